// `oidcc-rp-initiated-logout-certification-test-plan`: each module signs in, sends the browser to
// the end session endpoint, and looks whether the person is still signed in.
import assert from "node:assert/strict";
import { generateKeyPair, SignJWT } from "jose";
import { addressesAreHttps } from "./config.mjs";
import { random } from "./party.mjs";

export const plan = "oidcc-rp-initiated-logout-certification-test-plan";

/** Signs in and goes to the end session endpoint with the parameters that `change` makes. */
async function leave(party, change) {
  const { tokens, claims } = await party.signIn();
  assert.equal(await party.isSignedIn(), true);
  const parameters = {
    id_token_hint: tokens.id_token,
    post_logout_redirect_uri: party.client.afterSignOut,
    state: random(96),
  };
  const sent = await change(parameters, claims);
  const query = new URLSearchParams(sent);
  const page = await party.browser.get(`${party.server.end_session_endpoint}?${query}`);
  return { parameters, page };
}

/** The person is signed out and sent back to the client. */
const redirects = (change, parameters) => async (party) => {
  const { parameters: sent, page } = await leave(party, change);
  const url = new URL(page.location);
  assert.equal(`${url.origin}${url.pathname}`, party.client.afterSignOut);
  const expected = parameters.map((name) => [name, sent[name]]);
  assert.deepEqual([...url.searchParams], expected);
  assert.equal(await party.isSignedIn(), false);
};

/** A page asks or shows an error. Whatever the person says, the browser stays. */
const stays = (change) => async (party) => {
  const { page } = await leave(party, change);
  assert.equal(page.location, null);
  assert.equal(await party.isSignedIn(), true);
  if (page.status === 200) {
    const after = await party.browser.submit(page, "sign_out", {});
    assert.equal(after.location, null);
    assert.ok(!after.text.includes(party.client.afterSignOut), after.text);
    assert.equal(await party.isSignedIn(), false);
  } else assert.equal(page.status, 400, page.text);
};

/** The person is signed out, after a question if no ID token shows who asks, and told so. */
const signsOut = (change) => async (party) => {
  let { page } = await leave(party, change);
  if (page.text.includes('name="step" value="sign_out"')) {
    page = await party.browser.submit(page, "sign_out", {});
  }
  assert.deepEqual([page.status, page.location], [200, null]);
  assert.match(page.text, /You are signed out/);
  assert.equal(await party.isSignedIn(), false);
};

/** The token with the header of an unsigned one, and no signature. */
function withoutSignature(token) {
  const header = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
  return `${header}.${token.split(".")[1]}.`;
}

/** An ID token with the right claims, signed with another key. */
async function forged(claims) {
  const { privateKey } = await generateKeyPair("ES256");
  const header = { alg: "ES256", kid: "forged", typ: "JWT" };
  return new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
}

const without = (...names) => (parameters) =>
  Object.fromEntries(Object.entries(parameters).filter(([name]) => !names.includes(name)));

const changed = (name, value) => async (parameters, claims) => ({
  ...parameters,
  [name]: await value(parameters[name], claims),
});

export const modules = {
  "oidcc-rp-initiated-logout-discovery-endpoint-verification": async (party) => {
    addressesAreHttps(party.server);
    assert.equal(new URL(party.server.end_session_endpoint).origin, party.server.issuer);
  },
  "oidcc-rp-initiated-logout": redirects((parameters) => parameters, ["state"]),
  "oidcc-rp-initiated-logout-bad-post-logout-redirect-uri":
    stays(changed("post_logout_redirect_uri", (uri) => `${uri}${random()}`)),
  "oidcc-rp-initiated-logout-modified-id-token-hint": stays(changed("id_token_hint", withoutSignature)),
  "oidcc-rp-initiated-logout-no-id-token-hint": stays(without("id_token_hint")),
  "oidcc-rp-initiated-logout-no-params":
    signsOut(without("id_token_hint", "post_logout_redirect_uri", "state")),
  "oidcc-rp-initiated-logout-no-post-logout-redirect-uri":
    signsOut(without("post_logout_redirect_uri")),
  "oidcc-rp-initiated-logout-no-state": redirects(without("state"), []),
  "oidcc-rp-initiated-logout-only-state":
    signsOut(without("id_token_hint", "post_logout_redirect_uri")),
  "oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri":
    stays(changed("post_logout_redirect_uri", (uri) => `${uri}?foo=bar`)),
  "oidcc-rp-initiated-logout-bad-id-token-hint":
    stays(changed("id_token_hint", (_, claims) => forged(claims))),
};
