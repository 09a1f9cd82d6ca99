// The client of graphql-transport-ws as it comes: queries, mutations, and subscriptions that see
// what others write.
import assert from "node:assert/strict";
import { createClient, CloseCode } from "graphql-ws";
import WebSocket from "ws";

const base = process.env.TIDEGATE_URL;
const sockets = base.replace(/^http/, "ws");

const post = async (path, body, token) => {
  const answer = await fetch(base + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
};

const { access_token: token } = await post("/api/v4/oauth", {
  grant_type: "password", username: "demo", password: "demo1234", client_id: "demo-app",
});
const insert = (name) =>
  post("/api/v4/sql", { q: "insert into playlists (name) values (:name)", params: { name } }, token);

// A client, and what waits until the server says that a subscription is live.
const connect = (path, options) => {
  const waiting = [];
  const client = createClient({
    url: sockets + path,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    onNonLazyError: () => {},
    on: {
      pong: (_, payload) => {
        if (payload?.acknowledged) waiting.shift()?.(payload);
      },
    },
    ...options,
  });
  return { client, live: () => new Promise((resolve) => waiting.push(resolve)) };
};

const first = async (results) => {
  const { value } = await results.next();
  return value;
};
const once = async (client, request) => {
  const results = client.iterate(request);
  const value = await first(results);
  assert.equal((await results.next()).done, true, "an answer is followed by complete");
  return value;
};

// Each address, and each place for the token.
for (const [path, options] of [
  ["/api/graphql/schema/public", { connectionParams: { Authorization: `Bearer ${token}` } }],
  ["/api/graphql/schema/public", { connectionParams: async () => ({ token }) }],
  ["/api/v4/events", { connectionParams: { token, schema: "public" } }],
  [`/?token=${token}`, { lazy: false }],
]) {
  const { client, live } = connect(path, options);

  const read = await once(client, {
    query: "query Some($n: Int) { getArtists(limit: $n, orderBy: { id: asc }) { id albums(limit: 1) { title } } }",
    variables: { n: 2 },
  });
  assert.equal(read.errors, undefined);
  assert.equal(read.data.getArtists.length, 2);

  const made = await once(client, {
    query: "mutation ($data: JSON!) { insertPlaylists(data: $data) { id name } }",
    variables: { data: { name: "by graphql-ws" } },
  });
  assert.equal(made.data.insertPlaylists[0].name, "by graphql-ws");

  // Both live at once on one socket; one of them is filtered.
  const all = client.iterate({ query: "subscription { PlaylistsMessageAdded { __typename id name } }" });
  let acknowledged = live();
  const event = first(all);
  await acknowledged;
  const some = client.iterate({
    query: "subscription Some($where: JSON) { PlaylistsMessageAdded(where: $where) { name } }",
    variables: { where: { name: { eq: "wanted" } } },
    operationName: "Some",
  });
  acknowledged = live();
  const wanted = first(some);
  await acknowledged;
  await insert("unwanted");
  await insert("wanted");
  const { data, extensions } = await event;
  assert.equal(data.PlaylistsMessageAdded[0].__typename, "Playlists");
  assert.equal(data.PlaylistsMessageAdded[0].name, "unwanted");
  assert.deepEqual((await wanted).data, { PlaylistsMessageAdded: [{ name: "wanted" }] });
  await some.return();
  await all.return();

  // Behind the cursor of the first comes the second.
  const again = client.iterate({
    query: "subscription { PlaylistsMessageAdded { name } }",
    extensions: { after: extensions.cursor },
  });
  assert.equal((await first(again)).data.PlaylistsMessageAdded[0].name, "wanted");
  await again.return();

  await client.dispose();
}

// What is wrong with a document is an error of that operation alone.
{
  const { client } = connect("/api/graphql/schema/public", { connectionParams: { token } });
  for (const query of ["{ getArtists { nothing } }", "subscription { PlaylistsMessageAdded { nothing } }", "{"]) {
    const errors = await once(client, { query }).catch((errors) => errors);
    assert.ok(Array.isArray(errors) && errors[0].message, JSON.stringify(errors));
    assert.match(errors[0].extensions.code, /^GRAPHQL_/);
  }
  const read = await once(client, { query: "{ __typename }" });
  assert.equal(read.data.__typename, "Query");
  await client.dispose();
}

// A bad token closes the socket as the protocol says.
{
  const { client } = connect("/api/graphql/schema/public", { connectionParams: { token: "nonsense" } });
  const closed = await once(client, { query: "{ __typename }" }).catch((event) => event);
  assert.equal(closed.code, CloseCode.Unauthorized);
}
