// A demo that accepts the access tokens of a real OpenID provider, as members of a group: those of
// programs and of people, also while the provider changes its keys.

import assert from "node:assert/strict";
import { demo, passwordGrant, post } from "../demo.mjs";
import { audience, start, tokenOfPerson, tokenOfProgram } from "./provider.mjs";

const provider = await start();
const { issuer } = provider;
const { url, stop } = await demo({ TIDEGATE_PRIVATE_ISSUERS: "true" });

const graphql = (query, token) => post(`${url}/api/graphql/schema/public`, { query }, token);
const bills = (token) => graphql("{ getBills(orderBy: {title: asc}) { title } }", token);

// Checks that a token reads the bills with these titles, and no others.
async function reads(token, titles) {
  const answer = await bills(token);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(answer.body.data.getBills.map((bill) => bill.title), titles);
}

async function refused(token) {
  const answer = await bills(token);
  assert.equal(answer.status, 401, JSON.stringify(answer.body));
}

const keyOf = (token) => JSON.parse(Buffer.from(token.split(".")[0], "base64url")).kid;

// Sends a token with a new key until it is accepted, which is when the keys may be fetched again.
async function accepted(token) {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const answer = await bills(token);
    if (answer.status === 200) return;
    assert.equal(answer.status, 401, JSON.stringify(answer.body));
    assert.ok(performance.now() < deadline, "the new key is never fetched");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function acceptIssuer() {
  const owner = (await passwordGrant(url, "demo", "demo1234")).body.access_token;
  const member = {
    name: "provider",
    issuer,
    audience,
    role_claim: '["https://shop.example/roles"]',
    default_role: "partners",
  };
  const made = await post(`${url}/api/v4/issuers`, member, owner);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  for (const q of [
    "create table bills (title text primary key, org text, author text default tidegate.user_id())",
    "insert into bills (title, org) values ('Paint', 'acme'), ('Cement', 'globex')",
    "alter table bills enable row level security",
    "create policy org on bills using (org = (select tidegate.claim('org')))",
    'grant select, insert on bills to "demo/group/partners"',
  ]) {
    const answer = await post(`${url}/api/v4/sql`, { q }, owner);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  }
}

async function programs() {
  const acme = await tokenOfProgram(issuer, "acme-app");
  await refused(acme);
  assert.equal(provider.fetches.length, 0, "no keys are fetched for an issuer that is not accepted");
  await acceptIssuer();
  await reads(acme, ["Paint"]);
  await reads(await tokenOfProgram(issuer, "globex-app"), ["Cement"]);
  const insert = 'mutation { insertBills(data: {title: "Own", org: "acme"}) { author } }';
  const inserted = await graphql(insert, acme);
  assert.match(JSON.stringify(inserted.body), /"provider:acme-app"/);
  assert.equal((await post(`${url}/api/v4/sql`, { q: "select 1" }, acme)).status, 403);
}

async function people() {
  const nora = await tokenOfPerson(issuer, "nora");
  await reads(nora, ["Own", "Paint"]);
  await reads(await tokenOfPerson(issuer, "gil"), ["Cement"]);
  const insert = 'mutation { insertBills(data: {title: "Brush", org: "acme"}) { author } }';
  const inserted = await graphql(insert, nora);
  assert.match(JSON.stringify(inserted.body), /"provider:nora"/);
  const theft = 'mutation { insertBills(data: {title: "Not mine", org: "globex"}) { title } }';
  assert.ok((await graphql(theft, nora)).body.errors);
  return nora;
}

// `old` is a token of the first key. The keys are fetched once for each new key, and never twice in
// ten seconds, however often a token with an unknown key comes.
async function rotation(old) {
  const titles = ["Brush", "Own", "Paint"];
  assert.equal(keyOf(old), "first");
  provider.publish("second", "first");
  const next = await tokenOfPerson(issuer, "nora");
  assert.equal(keyOf(next), "second");
  await accepted(next);
  await reads(next, titles);
  await reads(old, titles);

  // The first key is withdrawn. Tidegate sees that when it fetches the next one.
  provider.publish("third", "second");
  const last = await tokenOfPerson(issuer, "nora");
  assert.equal(keyOf(last), "third");
  await accepted(last);
  await reads(last, titles);
  await reads(next, titles);
  await refused(old);

  const { fetches } = provider;
  assert.equal(fetches.length, 3);
  const waits = fetches.slice(1).map((at, index) => at - fetches[index]);
  // A request may take a second longer than the one after it.
  assert.ok(waits.every((wait) => wait > 9_000), `${waits} ms between the fetches`);
}

try {
  await programs();
  await rotation(await people());
  console.log("tokens of oidc-provider: programs, people who sign in, policies by claims, new and withdrawn keys");
} finally {
  await stop();
  provider.close();
}
