// OpenID Connect by openid-client: everything that it checks by itself, and the signature too.
import assert from "node:assert/strict";
import * as client from "openid-client";
import { Browser, passwordGrant, post } from "../demo.mjs";

const home = process.env.TIDEGATE_URL;
const callback = "http://127.0.0.1:5173/openid";

const owner = (await passwordGrant(home, "demo", "demo1234")).body.access_token;
const registered = await post(`${home}/api/v4/clients`, {
  id: "openid-client", name: "openid-client", redirect_uri: [callback], confirm: false,
}, owner);
assert.equal(registered.status, 201, JSON.stringify(registered.body));

const config = await client.discovery(
  new URL(home), "openid-client", registered.body.secret, undefined,
  // The demo speaks plain HTTP on a loopback address.
  { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] },
);
assert.equal(config.serverMetadata().issuer, home);

/** Sends a browser through the pages; returns where it ended. */
async function walk(browser, address) {
  let page = await browser.get(address);
  if (page.status === 200) {
    page = await browser.submit(page, "sign_in", { username: "alice", password: "alice1234" });
    page = await browser.get(page.location);
  }
  assert.equal(page.status, 303, page.text);
  return new URL(page.location);
}

async function signIn(browser, more) {
  const verifier = client.randomPKCECodeVerifier();
  const [state, nonce] = [client.randomState(), client.randomNonce()];
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: callback, scope: "openid profile", state, nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256", ...more,
  });
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce };
  const back = await walk(browser, address);
  const age = more?.max_age && { maxAge: Number(more.max_age) };
  return client.authorizationCodeGrant(config, back, { ...checks, ...age, idTokenExpected: true });
}

const browser = new Browser();
const tokens = await signIn(browser, { max_age: "60" });
const claims = tokens.claims();
assert.deepEqual(
  [claims.sub, claims.aud, claims.preferred_username], ["demo/alice", "openid-client", "alice"]);
const info = await client.fetchUserInfo(config, tokens.access_token, claims.sub);
assert.equal(info.name, "alice");

const next = await client.refreshTokenGrant(config, tokens.refresh_token);
assert.equal(next.claims().auth_time, claims.auth_time);

// The person is not asked again. A browser without a session gets the error that the library knows.
const silent = await signIn(browser, { prompt: "none", id_token_hint: next.id_token });
assert.equal(silent.claims().sub, "demo/alice");
await assert.rejects(signIn(new Browser(), { prompt: "none" }), { error: "login_required" });

const end = client.buildEndSessionUrl(config, {
  id_token_hint: next.id_token, post_logout_redirect_uri: callback, state: "gone",
});
const page = await browser.get(end);
assert.equal(page.location, `${callback}?state=gone`, page.text);
await assert.rejects(signIn(browser, { prompt: "none" }), { error: "login_required" });
console.log("openid-client: discovery, code, ID token, userinfo, refresh, prompt=none, sign-out");
