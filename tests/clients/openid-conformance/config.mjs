// `oidcc-config-certification-test-plan`: the discovery document and the keys (Discovery 1.0,
// section 3).
import assert from "node:assert/strict";

export const plan = "oidcc-config-certification-test-plan";

/** Members that only a private or symmetric key has (RFC 7518, section 6). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Every address of the document is one of this issuer over HTTPS. */
export function addressesAreHttps(server) {
  const names = Object.keys(server).filter((name) => /_(endpoint|uri)$/.test(name));
  for (const name of ["issuer", ...names]) {
    const url = new URL(server[name]);
    assert.equal(url.protocol, "https:", name);
    assert.equal(url.hash, "", name);
  }
}

function includes(server, name, ...values) {
  assert.ok(Array.isArray(server[name]), `${name} is no array`);
  for (const value of server[name]) assert.equal(typeof value, "string", name);
  for (const value of values) assert.ok(server[name].includes(value), `${name} lacks ${value}`);
}

function keys(set) {
  assert.ok(set.keys.length > 0);
  const ids = set.keys.map((key) => key.kid);
  assert.ok(ids.every(Boolean) && new Set(ids).size === ids.length, `kid: ${ids}`);
  for (const key of set.keys) {
    for (const name of PRIVATE) assert.ok(!(name in key), `a published key has ${name}`);
    assert.deepEqual([key.kty, key.crv], ["EC", "P-256"]);
    for (const name of ["x", "y"]) {
      assert.match(key[name], BASE64URL);
      assert.equal(Buffer.from(key[name], "base64url").length, 32, name);
    }
  }
}

export const modules = {
  "oidcc-discovery-endpoint-verification": async (party) => {
    const { server, discovery, keySet } = party.provider;
    for (const answer of [discovery, keySet]) {
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get("content-type"), /^application\/(jwk-set\+)?json\b/);
    }
    assert.equal(discovery.url, `${server.issuer}/.well-known/openid-configuration`);
    addressesAreHttps(server);
    for (const name of ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"]) {
      assert.equal(new URL(server[name]).origin, server.issuer, name);
    }
    includes(server, "response_types_supported", "code");
    includes(server, "grant_types_supported", "authorization_code");
    includes(server, "subject_types_supported");
    assert.ok(server.subject_types_supported.every((type) => ["public", "pairwise"].includes(type)));
    includes(server, "scopes_supported", "openid");
    includes(server, "claims_supported", "sub");
    const methods = ["client_secret_basic", "client_secret_post"];
    includes(server, "token_endpoint_auth_methods_supported", ...methods);
    includes(server, "id_token_signing_alg_values_supported");
    for (const name of ["claims", "request", "request_uri"]) {
      assert.equal(typeof server[`${name}_parameter_supported`], "boolean", name);
    }
    keys(party.provider.keySet.body);
    if (!server.id_token_signing_alg_values_supported.includes("RS256")) {
      party.differences.push("id_token_signing_alg_values_supported lacks RS256");
    }
  },
};
