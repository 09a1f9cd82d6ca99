// Client libraries with their default settings.
import assert from "node:assert/strict";
import { GraphQLClient, gql } from "graphql-request";
import { Client, cacheExchange, fetchExchange } from "@urql/core";
import { authorization, endpoint } from "./service.mjs";

const url = endpoint("public");
const headers = { Authorization: authorization };

// graphql-request: documents, variables, batches, errors.
{
  const client = new GraphQLClient(url, { headers });
  const query = gql`
    query Artists($where: JSON, $limit: Int = 2, $more: Boolean!) {
      getArtists(where: $where, limit: $limit, orderBy: { id: asc }) {
        ...names
        albums(limit: 1) @include(if: $more) { title artists { ...names } }
      }
    }
    fragment names on Artists { __typename id name }
  `;
  const data = await client.request(query, { where: { id: { lte: 3 } }, more: true });
  assert.equal(data.getArtists.length, 2);
  assert.deepEqual(data.getArtists[0].albums[0].artists, {
    __typename: "Artists", id: "1", name: data.getArtists[0].name,
  });
  const less = await client.request(query, { more: false, limit: 1 });
  assert.deepEqual(Object.keys(less.getArtists[0]), ["__typename", "id", "name"]);

  const batch = await client.batchRequests([
    { document: "{ a: getArtists(id: 1) { id } }" },
    { document: "query($id: ID!) { b: getArtists(id: $id) { id } }", variables: { id: 2 } },
  ]);
  assert.deepEqual(batch.map(({ data }) => data), [{ a: [{ id: "1" }] }, { b: [{ id: "2" }] }]);

  const failed = await client.request("{ getArtists { nothing } }").catch((error) => error);
  assert.equal(failed.response.errors[0].extensions.code, "GRAPHQL_VALIDATION_FAILED");
}

// urql: adds __typename to every selection, sends its own Accept, uses GET for short queries.
for (const preferGetMethod of [undefined, "within-url-limit", "force"]) {
  const client = new Client({
    url, fetchOptions: { headers }, exchanges: [cacheExchange, fetchExchange],
    ...(preferGetMethod === undefined ? {} : { preferGetMethod }),
  });
  const read = await client.query(
    `query ($id: ID!) { getArtists(id: $id) { id albums { id tracks(limit: 2) { title } } } }`, { id: "1" });
  assert.equal(read.error, undefined);
  assert.equal(read.data.getArtists[0].__typename, "Artists");
  assert.equal(read.data.getArtists[0].albums[0].tracks[0].__typename, "Tracks");

  const created = await client.mutation(
    `mutation ($data: JSON!) { insertPlaylists(data: $data) { id name } }`, { data: { name: "by urql" } });
  assert.equal(created.error, undefined);
  const [playlist] = created.data.insertPlaylists;
  assert.equal(playlist.name, "by urql");
  const deleted = await client.mutation(
    `mutation ($id: ID!) { deletePlaylists(id: $id) { id } }`, { id: playlist.id });
  assert.deepEqual(deleted.data.deletePlaylists.map(({ id }) => id), [playlist.id]);

  const failed = await client.query("{ getArtists { nothing } }", {});
  assert.equal(failed.error.graphQLErrors[0].extensions.code, "GRAPHQL_VALIDATION_FAILED");
}
console.log("graphql-request and urql");
