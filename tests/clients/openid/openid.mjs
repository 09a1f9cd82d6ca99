// A demo whose people sign in with a real OpenID provider.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import Provider from "oidc-provider";
import { Browser, demo, passwordGrant, post, signInAtProvider } from "../demo.mjs";

// The provider needs the demo's address for its client, and the demo the provider's.
const server = createServer((request, answer) => provider.callback()(request, answer));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

const { url, stop } = await demo({
  TIDEGATE_OPENID_ISSUER: issuer,
  TIDEGATE_OPENID_LABEL: "Example ID",
  TIDEGATE_OPENID_CLIENT_ID: "tidegate",
  TIDEGATE_OPENID_CLIENT_SECRET: "a secret of the provider's",
  TIDEGATE_OPEN_SIGNUP: "true",
});

const people = {
  nora: { email: "nora@example.com", email_verified: true, preferred_username: "Nora!" },
  otto: { email: "otto@example.com", email_verified: false },
};
const seen = [];
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "tidegate",
      client_secret: "a secret of the provider's",
      redirect_uris: [`${url}/signin/openid/callback`],
      token_endpoint_auth_method: "client_secret_basic",
    },
  ],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username"] },
  features: { devInteractions: { enabled: true } },
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, ...people[id] }),
  }),
});
provider.on("authorization.accepted", (context) => seen.push(context.oidc.params));

const atProvider = (browser, address, name) => signInAtProvider(browser, address, name, url);

const callback = "https://shop.example/back";
const verifier = randomBytes(32).toString("base64url");
const query = new URLSearchParams({
  response_type: "code",
  client_id: "social",
  redirect_uri: callback,
  state: "ours",
  code_challenge: createHash("sha256").update(verifier).digest("base64url"),
  code_challenge_method: "S256",
});

// From the sign-in page to the provider; where the provider sends the browser.
async function depart(browser, name) {
  const page = await browser.get(`${url}/auth?${query}`);
  assert.equal(page.status, 200, page.text);
  const choice = /href="([^"]*\/signin\/openid[^"]*)"[^>]*>Sign in with Example ID/.exec(page.text);
  assert.ok(choice, page.text);
  const address = new URL(choice[1].replaceAll("&amp;", "&"), page.url);
  const sent = await browser.get(address);
  assert.equal(sent.status, 303, sent.text);
  return atProvider(browser, sent.location, name);
}

try {
  const owner = (await passwordGrant(url, "demo", "demo1234")).body.access_token;
  const client = {
    id: "social", name: "Social", redirect_uri: [callback], public: true, confirm: false,
    allow_signup: true, social_signup: false, signup_kind: "member", signup_group: "people",
  };
  assert.equal((await post(`${url}/api/v4/clients`, client, owner)).status, 201);
  const patch = (body) =>
    fetch(`${url}/api/v4/clients/social`, {
      method: "PATCH",
      redirect: "manual",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${owner}` },
      body: JSON.stringify(body),
    });

  // An account is only created if the client allows sign-up with an identity provider.
  let browser = new Browser();
  let closed = await browser.get(await depart(browser, "nora"));
  assert.equal(closed.status, 403, closed.text);
  assert.equal((await patch({ social_signup: true })).status, 303);

  // A first time makes the account, and the code flow goes on by itself.
  browser = new Browser();
  const back = await browser.get(await depart(browser, "nora"));
  assert.equal(back.status, 303, back.text);
  let page = await browser.get(back.location);
  assert.equal(page.status, 303, page.text);
  assert.ok(page.location.startsWith(`${callback}?code=`), page.location);
  assert.equal(new URL(page.location).searchParams.get("state"), "ours");
  const tokens = await post(`${url}/api/v4/oauth`, {
    grant_type: "authorization_code",
    code: new URL(page.location).searchParams.get("code"),
    redirect_uri: callback,
    client_id: "social",
    code_verifier: verifier,
  });
  assert.equal(tokens.status, 200, JSON.stringify(tokens.body));
  const claims = JSON.parse(Buffer.from(tokens.body.access_token.split(".")[1], "base64url"));
  assert.deepEqual([claims.uid, claims.email], ["Nora", "nora@example.com"]);
  assert.deepEqual([claims.kind, claims.group], ["member", "people"], "the kind that the client says");
  const last = seen.at(-1);
  assert.equal(last.code_challenge_method, "S256");
  assert.ok(last.nonce && last.state && last.scope.includes("openid"));

  // The second time finds the same account, in another browser too, also without sign-up.
  assert.equal((await patch({ social_signup: false })).status, 303);
  const other = new Browser();
  assert.equal((await other.get(await depart(other, "nora"))).status, 303);
  assert.match((await other.get(`${url}/account`)).text, /Nora/);
  assert.equal((await patch({ social_signup: true })).status, 303);

  // An address that the provider has not verified is worth nothing.
  const otto = new Browser();
  const unverified = await otto.get(await depart(otto, "otto"));
  assert.equal(unverified.status, 400, unverified.text);
  assert.match(unverified.text, /verified/);

  // Who has an account here links one there, and signs in with it from then on.
  const alice = new Browser();
  const account = await alice.submit(await alice.get(`${url}/account`), "sign_in", {
    username: "alice", password: "alice1234", database: "demo",
  });
  const own = await alice.get(account.location);
  const away = await alice.submit(own, "link", { provider: "openid" });
  const way1 = /href="([^"]*)"[^>]*>Go on to Example ID/.exec(away.text);
  assert.ok(way1, away.text);
  const home = await alice.get(await atProvider(alice, way1[1].replaceAll("&amp;", "&"), "otto"));
  assert.equal(home.location, `${url}/account?done=linked`, home.text);
  const elsewhere = new Browser();
  assert.equal((await elsewhere.get(await depart(elsewhere, "otto"))).status, 303);
  assert.match((await elsewhere.get(`${url}/account`)).text, /<strong>alice</);
  const listed = await alice.get(`${url}/account`);
  const unlinked = await alice.submit(listed, "unlink", { issuer, subject: "otto" });
  assert.match(unlinked.text, /The account is unlinked/);

  // A way back belongs to the browser that went, works once, and cannot be made up.
  const victim = new Browser();
  const stolen = await depart(new Browser(), "nora");
  assert.equal((await victim.get(stolen)).status, 400);
  assert.doesNotMatch((await victim.get(`${url}/account`)).text, /Nora/);
  const twice = new Browser();
  const way = await depart(twice, "nora");
  assert.equal((await twice.get(way)).status, 303);
  assert.notEqual((await twice.get(way)).status, 303);
  const forged = new URL(way);
  forged.searchParams.set("state", "made-up");
  assert.equal((await twice.get(forged)).status, 400);
  const denied = new Browser();
  const no = new URL(await depart(denied, "nora"));
  no.searchParams.delete("code");
  no.searchParams.set("error", "access_denied");
  assert.equal((await denied.get(no)).status, 400);
  assert.equal((await denied.get(`${url}/signin/nowhere?${query}`)).status, 404);
  console.log("openid: sign-up, sign-in, linking, unverified address, stolen, repeated and forged ways back");
} finally {
  await stop();
  server.closeAllConnections();
  server.close();
}
