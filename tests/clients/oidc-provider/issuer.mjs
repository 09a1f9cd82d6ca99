// A demo that accepts the access tokens of a real OpenID provider, as members of a group.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import Provider from "oidc-provider";
import { demo, passwordGrant, post } from "../demo.mjs";

const audience = "https://api.shop.example";
const server = createServer((request, answer) => provider.callback()(request, answer));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const key = (kid) => ({
  ...generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" }),
  kid,
  alg: "ES256",
  use: "sig",
});
const client = (id) => ({
  client_id: id,
  client_secret: `the secret of ${id}`,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: "ES256",
});
const orgs = { "acme-app": "acme", "globex-app": "globex" };
const provider = new Provider(issuer, {
  jwks: { keys: [key("first")] },
  clients: Object.keys(orgs).map(client),
  extraTokenClaims: (context, token) => ({
    org: orgs[token.clientId],
    "https://shop.example/roles": ["unknown", "partners"],
  }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      getResourceServerInfo: () => ({
        scope: "shop",
        audience,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

// An access token for a client by its own credentials.
async function token(id) {
  const answer = await fetch(`${issuer}/token`, {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(`${id}:${encodeURIComponent(`the secret of ${id}`)}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "shop" }),
  });
  const body = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body.access_token;
}

const { url, stop } = await demo({ TIDEGATE_PRIVATE_ISSUERS: "true" });
try {
  const owner = (await passwordGrant(url, "demo", "demo1234")).body.access_token;
  const sql = async (q) => {
    const answer = await post(`${url}/api/v4/sql`, { q }, owner);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  };
  const titles = async (bearer) => {
    const query = "{ getBills(orderBy: {title: asc}) { title author } }";
    return post(`${url}/api/graphql/schema/public`, { query }, bearer);
  };
  const acme = await token("acme-app");
  assert.equal((await titles(acme)).status, 401, "the issuer is not accepted yet");

  const accepted = await post(
    `${url}/api/v4/issuers`,
    {
      name: "provider",
      issuer,
      audience,
      role_claim: '["https://shop.example/roles"]',
      default_role: "partners",
    },
    owner,
  );
  assert.equal(accepted.status, 201, JSON.stringify(accepted.body));
  await sql("create table bills (title text primary key, org text, author text default tidegate.user_id())");
  await sql("insert into bills (title, org) values ('Paint', 'acme'), ('Cement', 'globex')");
  await sql("alter table bills enable row level security");
  await sql("create policy org on bills using (org = (select tidegate.claim('org')))");
  await sql('grant select, insert on bills to "demo/group/partners"');

  for (const [id, title] of [["acme-app", "Paint"], ["globex-app", "Cement"]]) {
    const answer = await titles(await token(id));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.deepEqual(answer.body.data.getBills.map((bill) => bill.title), [title]);
  }
  const query = 'mutation { insertBills(data: {title: "Own", org: "acme"}) { author } }';
  const inserted = await post(`${url}/api/graphql/schema/public`, { query }, acme);
  assert.match(JSON.stringify(inserted.body), /"provider:acme-app"/);
  assert.equal((await post(`${url}/api/v4/sql`, { q: "select 1" }, acme)).status, 403);
  console.log("tokens of oidc-provider are accepted, and policies read their claims");
} finally {
  await stop();
  server.close();
}
