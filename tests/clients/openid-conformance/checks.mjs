// The conditions that modules of the conformance suite share. Each throws an AssertionError.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { decodeProtectedHeader, jwtVerify } from "jose";

/** Characters of `error` and `error_description` (RFC 6749, sections 4.1.2.1 and 5.2). */
const ERROR_TEXT = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;

const ERROR_PARAMETERS = ["error", "error_description", "error_uri", "state", "session_state", "iss"];

/** Errors for a page that `prompt=none` forbids (Core 1.0, section 3.1.2.6). */
export const NEEDS_A_PAGE = [
  "interaction_required", "login_required", "account_selection_required", "consent_required",
];

/** The standard claims that a scope asks for (Core 1.0, section 5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ["sub"],
  profile: [
    "name", "given_name", "family_name", "middle_name", "nickname", "profile", "picture", "website",
    "gender", "birthdate", "zoneinfo", "locale", "updated_at", "preferred_username",
  ],
  email: ["email", "email_verified"],
  address: ["address"],
  phone: ["phone_number", "phone_number_verified"],
};

/** Types of the claims that are no text (section 5.1). */
const TYPES = {
  email_verified: "boolean", phone_number_verified: "boolean", updated_at: "number", address: "object",
};

/** Each standard claim that is there has its type. */
export function standardClaims(claims) {
  for (const name of Object.values(CLAIMS_OF_SCOPES).flat()) {
    if (name in claims) assert.equal(typeof claims[name], TYPES[name] ?? "string", name);
  }
  if ("birthdate" in claims) assert.match(claims.birthdate, /^(\d{4}|0000-\d\d-\d\d|\d{4}-\d\d-\d\d)$/);
}

/** The bits of a value whose characters occur as often as they do in it. */
function entropy(text) {
  const counts = new Map();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  const share = (count) => -Math.log2(count / text.length) * count;
  return [...counts.values()].reduce((sum, count) => sum + share(count), 0);
}

export function unguessable(text, name) {
  assert.ok(entropy(text) >= 128, `${name} has ${Math.floor(entropy(text))} bits`);
}

/** What every response at the redirect URI has in common; `state` is what the request had. */
export function callback(server, url, state) {
  assert.equal(url.hash, "", "the response is not in the query");
  const names = [...url.searchParams.keys()];
  assert.equal(new Set(names).size, names.length, `${url} repeats a parameter`);
  if (state !== undefined) assert.equal(url.searchParams.get("state"), state);
  const issuer = url.searchParams.get("iss");
  if (issuer !== null || server.authorization_response_iss_parameter_supported) {
    assert.equal(issuer, server.issuer);
  }
}

/** A response at the redirect URI with a code. */
export function code(server, url, state) {
  callback(server, url, state);
  assert.equal(url.searchParams.get("error"), null, url.href);
  const value = url.searchParams.get("code");
  assert.ok(value, url.href);
  unguessable(value, "the code");
  return value;
}

/** A response at the redirect URI with one of these errors. */
export function refusal(server, url, state, allowed) {
  callback(server, url, state);
  const parameters = Object.fromEntries(url.searchParams);
  assert.ok(allowed.includes(parameters.error), `${parameters.error} instead of ${allowed}`);
  for (const name in parameters) assert.ok(ERROR_PARAMETERS.includes(name), `unexpected ${name}`);
  if ("error_description" in parameters) assert.match(parameters.error_description, ERROR_TEXT);
  if ("error_uri" in parameters) assert.ok(URL.canParse(parameters.error_uri));
}

function json(answer) {
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json\b/);
}

/** A token response (RFC 6749, section 5.1). */
export function tokens(answer) {
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  json(answer);
  const directives = answer.headers.get("cache-control")?.split(/\s*,\s*/) ?? [];
  assert.ok(directives.includes("no-store"), `Cache-Control: ${directives}`);
  const { access_token, token_type, expires_in, refresh_token } = answer.body;
  assert.match(access_token, /^[\x20-\x7e]+$/);
  unguessable(access_token, "the access token");
  assert.equal(token_type.toLowerCase(), "bearer");
  assert.ok(Number.isInteger(expires_in) && expires_in > 0, `expires_in ${expires_in}`);
  if (refresh_token !== undefined) {
    assert.match(refresh_token, /^[\x20-\x7e]+$/);
    unguessable(refresh_token, "the refresh token");
  }
}

/** An error of the token endpoint (RFC 6749, section 5.2). */
export function tokenError(answer, error) {
  assert.deepEqual([answer.status, answer.body.error], [400, error], JSON.stringify(answer.body));
  json(answer);
  if ("error_description" in answer.body) assert.match(answer.body.error_description, ERROR_TEXT);
  if ("error_uri" in answer.body) assert.ok(URL.canParse(answer.body.error_uri));
}

/** The left half of the SHA-256 of a value (Core 1.0, section 3.1.3.6). */
function leftHalf(text) {
  return createHash("sha256").update(text).digest().subarray(0, 16).toString("base64url");
}

/** The claims of a valid ID token (Core 1.0, sections 2 and 3.1.3.7). */
export async function idToken(provider, token, { clientId, nonce, accessToken, code }) {
  const { server, keys } = provider;
  const header = decodeProtectedHeader(token);
  assert.ok(header.kid, "the ID token has no kid");
  const { payload } = await jwtVerify(token, keys, {
    issuer: server.issuer,
    audience: clientId,
    algorithms: server.id_token_signing_alg_values_supported.filter((name) => name !== "none"),
    requiredClaims: ["sub", "exp", "iat"],
  });
  assert.match(payload.sub, /^[\x20-\x7e]{1,255}$/);
  assert.equal(payload.nonce, nonce);
  const now = Date.now() / 1000;
  assert.ok(payload.iat <= now + 5 && payload.iat > now - 60, `iat ${payload.iat}`);
  if (Array.isArray(payload.aud) && payload.aud.length > 1) assert.equal(payload.azp, clientId);
  const { auth_time } = payload;
  if (auth_time !== undefined) assert.ok(Number.isInteger(auth_time) && auth_time <= now + 5);
  if ("at_hash" in payload) assert.equal(payload.at_hash, leftHalf(accessToken));
  if ("c_hash" in payload) assert.equal(payload.c_hash, leftHalf(code));
  standardClaims(payload);
  return payload;
}

/** The claims of a response of the userinfo endpoint (Core 1.0, section 5.3.2). */
export function userInfo(answer, subject) {
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  json(answer);
  assert.equal(answer.body.sub, subject);
  standardClaims(answer.body);
  return answer.body;
}
