// `oidcc-basic-certification-test-plan`: the modules in the order of the plan. PKCE is mandatory
// here, so each request has a code challenge in addition.
import assert from "node:assert/strict";
import { decodeProtectedHeader } from "jose";
import { random, said } from "./party.mjs";
import * as checks from "./checks.mjs";

export const plan = "oidcc-basic-certification-test-plan";

const seconds = (count) => new Promise((resolve) => setTimeout(resolve, count * 1000));

/** A request that has these parameters too is answered as usual. */
const succeedsWith = (more) => async (party) => {
  const { info } = await party.signIn(more);
  assert.equal(typeof info.sub, "string");
};

/** The userinfo endpoint has the claims of these scopes. */
const scopes = (scope) => async (party) => {
  const offered = party.server.scopes_supported;
  const absent = scope.split(" ").filter((name) => !offered.includes(name));
  if (absent.length > 0) {
    party.skipped.push(`scopes_supported lacks ${absent.join(" and ")}; a request with them succeeds`);
  }
  const { info } = await party.signIn({ scope });
  if (absent.length === 0) party.warnOfMissing(info, scope);
};

/** Two requests in one browser. The person is not asked the second time, and the sign-in is the same. */
const sameSignIn = (first, second) => async (party) => {
  const before = await party.signIn(first);
  const after = await party.signIn(typeof second === "function" ? second(before) : second);
  assert.deepEqual(after.shown, []);
  assert.equal(after.claims.sub, before.claims.sub);
  assert.equal(after.claims.auth_time, before.claims.auth_time);
  if (first?.max_age) assert.equal(typeof after.claims.auth_time, "number");
};

/** The same, but the person has to sign in once more. */
const newSignIn = (second) => async (party) => {
  const before = await party.signIn();
  await seconds(2);
  const after = await party.signIn(second);
  assert.ok(after.shown.includes("sign_in"), "nobody was asked to sign in");
  assert.equal(after.claims.sub, before.claims.sub);
  assert.ok(after.claims.auth_time > before.claims.auth_time, "auth_time is the first sign-in's");
  assert.ok(after.claims.auth_time > Date.now() / 1000 - 60);
};

/** A code is refused the second time. */
const reuse = (wait) => async (party) => {
  const begun = await party.codeFor();
  const { tokens } = await party.completed(begun);
  await seconds(wait);
  checks.tokenError(await party.redeem(begun), "invalid_grant");
  if (wait === 0) return;
  const answer = await party.userInfo(tokens.access_token);
  if (answer.status !== 401) party.warnings.push("the access token of the first use works still");
};

/** The request object that has the parameters of a request, without a signature. */
function unsigned(party, parameters) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { ...parameters, iss: party.client.id, aud: party.server.issuer };
  return `${part({ alg: "none" })}.${part(claims)}.`;
}

/** A request whose parameters are in a request object but for those that OAuth demands outside. */
function requestObject(party, outside) {
  const { query } = party.request();
  const object = unsigned(party, Object.fromEntries(query));
  const inside = ["code_challenge", "code_challenge_method", "state", "nonce"];
  const absent = Object.fromEntries(inside.map((name) => [name, undefined]));
  return { ...absent, request: object, ...outside };
}

/** The code comes back, or this error: the provider does not know the parameter. */
async function supportedOrRefused(party, more, error) {
  const { url, page } = await party.authorize(more);
  assert.ok(url, said(page));
  checks.refusal(party.server, url, undefined, [error]);
  party.skipped.push(`refused with ${error}`);
}

/** A page shows the error, because there is no address to send the browser to. */
async function errorPage(party, more) {
  const { url, page } = await party.authorize(more);
  assert.equal(url, undefined, "the browser was redirected");
  assert.equal(page.status, 400, said(page));
  assert.match(page.text, /redirect/i);
}

export const modules = {
  "oidcc-server": async (party) => {
    const { claims } = await party.signIn();
    assert.ok("at_hash" in claims);
    if ("name" in claims) party.warnings.push("the ID token has name, which nobody asked for");
  },
  "oidcc-response-type-missing": async (party) => {
    const { request, url, page } = await party.authorize({ response_type: undefined });
    assert.ok(url, said(page));
    checks.refusal(party.server, url, request.state, ["invalid_request", "unsupported_response_type"]);
  },
  "oidcc-idtoken-signature": async (party) => {
    assert.ok(!("registration_endpoint" in party.server));
    const { tokens } = await party.signIn();
    const { alg, kid } = decodeProtectedHeader(tokens.id_token);
    assert.ok(kid && party.server.id_token_signing_alg_values_supported.includes(alg));
    party.skipped.push(`only for clients that register themselves; the signature is ${alg}, with kid`);
  },
  "oidcc-idtoken-unsigned": async (party) => {
    assert.ok(!party.server.id_token_signing_alg_values_supported.includes("none"));
    party.skipped.push("only for clients that register themselves; none is no algorithm here");
  },
  "oidcc-userinfo-get": succeedsWith({}),
  "oidcc-userinfo-post-header": async (party) => {
    const { tokens, claims } = await party.signIn();
    checks.userInfo(await party.userInfo(tokens.access_token, { method: "POST" }), claims.sub);
  },
  "oidcc-userinfo-post-body": async (party) => {
    const { tokens, claims } = await party.signIn();
    const body = new URLSearchParams({ access_token: tokens.access_token });
    checks.userInfo(await party.userInfo(null, { method: "POST", body }), claims.sub);
  },
  "oidcc-ensure-request-without-nonce-succeeds-for-code-flow": succeedsWith({ nonce: undefined }),
  "oidcc-scope-profile": scopes("openid profile"),
  "oidcc-scope-email": scopes("openid email"),
  "oidcc-scope-address": scopes("openid address"),
  "oidcc-scope-phone": scopes("openid phone"),
  "oidcc-scope-all": scopes("openid address email phone profile"),
  "oidcc-ensure-other-scope-order-succeeds": scopes("email openid"),
  "oidcc-display-page": succeedsWith({ display: "page" }),
  "oidcc-display-popup": succeedsWith({ display: "popup" }),
  "oidcc-prompt-login": newSignIn({ prompt: "login" }),
  "oidcc-prompt-none-not-logged-in": async (party) => assert.equal(await party.isSignedIn(), false),
  "oidcc-prompt-none-logged-in": sameSignIn({}, { prompt: "none" }),
  "oidcc-max-age-1": newSignIn({ max_age: "1" }),
  "oidcc-max-age-10000": sameSignIn({ max_age: "15000" }, { max_age: "10000" }),
  "oidcc-ensure-request-with-unknown-parameter-succeeds": succeedsWith({ extra: "foobar" }),
  "oidcc-id-token-hint":
    sameSignIn({}, ({ tokens }) => ({ prompt: "none", id_token_hint: tokens.id_token })),
  "oidcc-login-hint": async (party) => {
    const hint = `buffy@${new URL(party.server.issuer).hostname}`;
    const page = await party.browser.get(party.address(party.request({ login_hint: hint })));
    assert.ok(page.text.includes(`value="${hint}"`), page.text);
    await party.signIn({ login_hint: hint });
  },
  "oidcc-ui-locales": succeedsWith({ ui_locales: "se" }),
  "oidcc-claims-locales": succeedsWith({ claims_locales: "se" }),
  "oidcc-ensure-request-with-acr-values-succeeds": async (party) => {
    const values = party.server.acr_values_supported ?? ["1", "2"];
    const { claims } = await party.signIn({ acr_values: values.join(" ") });
    if (!values.includes(claims.acr)) party.warnings.push("the ID token has no acr");
  },
  "oidcc-codereuse": reuse(0),
  "oidcc-codereuse-30seconds": reuse(30),
  "oidcc-ensure-registered-redirect-uri": (party) =>
    errorPage(party, { redirect_uri: `${party.client.callback}/${random()}` }),
  "oidcc-ensure-post-request-succeeds": async (party) => {
    const request = party.request();
    const post = { method: "POST", body: request.query };
    const { url } = await party.walk(party.browser.send(party.server.authorization_endpoint, post));
    await party.completed({ request, code: checks.code(party.server, url, request.state) });
  },
  "oidcc-server-client-secret-post": async (party) => {
    await party.signIn({}, "client_secret_post");
  },
  "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported": async (party) => {
    assert.equal(party.server.request_uri_parameter_supported, false);
    const outside = { request: undefined, request_uri: `${party.client.callback}/request.jwt` };
    await supportedOrRefused(party, requestObject(party, outside), "request_uri_not_supported");
  },
  "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported": async (party) => {
    assert.equal(party.server.request_parameter_supported, false);
    await supportedOrRefused(party, requestObject(party, {}), "request_not_supported");
  },
  "oidcc-claims-essential": async (party) => {
    const asked = JSON.stringify({ userinfo: { name: { essential: true } } });
    const { claims, info } = await party.signIn({ claims: asked });
    assert.equal(party.server.claims_parameter_supported, false);
    party.warnOfMissing(info, "openid");
    if (!("name" in info)) party.warnings.push("userinfo lacks name: claims is not supported");
    if ("name" in claims) party.warnings.push("the ID token has name");
  },
  "oidcc-ensure-request-object-with-redirect-uri": (party) =>
    errorPage(party, requestObject(party, { redirect_uri: `${party.client.callback}/${random()}` })),
  "oidcc-refresh-token": async (party) => {
    assert.ok(party.server.grant_types_supported.includes("refresh_token"));
    const first = await party.signIn();
    // The time of issue has seconds.
    await seconds(1);
    const refresh = (token) => ({ grant_type: "refresh_token", refresh_token: token });
    const answer = await party.post({ ...refresh(first.tokens.refresh_token), scope: "openid" });
    checks.tokens(answer);
    assert.notEqual(answer.body.access_token, first.tokens.access_token);
    const claims = await party.idToken(answer.body);
    for (const name of ["iss", "sub", "aud", "auth_time", "azp"]) {
      assert.deepEqual(claims[name], first.claims[name], name);
    }
    assert.ok(claims.iat > first.claims.iat);
    checks.userInfo(await party.userInfo(answer.body.access_token), claims.sub);

    const [own, other] = party.provider.clients;
    party.client = other;
    const second = await party.signIn();
    party.client = own;
    checks.tokenError(await party.post(refresh(second.tokens.refresh_token)), "invalid_grant");
    party.client = other;
    checks.tokens(await party.post(refresh(second.tokens.refresh_token)));
  },
  "oidcc-ensure-request-with-valid-pkce-succeeds": async (party) => {
    assert.ok(party.server.code_challenge_methods_supported.includes("S256"));
    await party.signIn();
  },
};
