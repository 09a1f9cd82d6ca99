// npm's oidc-provider: programs get tokens by their secrets, people by signing in, and its keys can
// be changed while it runs.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import Provider from "oidc-provider";
import { Browser, signInAtProvider } from "../demo.mjs";

export const audience = "https://api.shop.example";
const callback = "https://shop.example/back";
const orgs = { "acme-app": "acme", "globex-app": "globex", nora: "acme", gil: "globex" };

const keys = new Map();
function key(kid) {
  if (!keys.has(kid)) {
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
    keys.set(kid, { ...pair.privateKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" });
  }
  return keys.get(kid);
}

const program = (id) => ({
  client_id: id,
  client_secret: `the secret of ${id}`,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: "ES256",
});
const application = {
  client_id: "shop",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code"],
  redirect_uris: [callback],
  id_token_signed_response_alg: "ES256",
};

// A provider that publishes the keys with these ids, and signs with the first of them.
const provider = (issuer, kids) =>
  new Provider(issuer, {
    jwks: { keys: kids.map(key) },
    clients: [...["acme-app", "globex-app"].map(program), application],
    pkce: { required: () => true },
    findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (context, token) => ({
      org: orgs[token.accountId ?? token.clientId],
      "https://shop.example/roles": ["unknown", "partners"],
    }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: true },
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

// Starts the provider with the key `first`. `publish` changes its keys, and `fetches` has the times
// at which the keys were fetched.
export async function start() {
  const fetches = [];
  let current;
  const server = createServer((request, answer) => {
    if (request.url === "/jwks") fetches.push(performance.now());
    current.callback()(request, answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const publish = (...kids) => {
    current = provider(issuer, kids);
  };
  publish("first");
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { issuer, publish, fetches, close };
}

async function granted(issuer, headers, body) {
  const answer = await fetch(`${issuer}/token`, {
    method: "POST",
    headers,
    body: new URLSearchParams(body),
  });
  const tokens = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(tokens));
  return tokens.access_token;
}

// An access token for a program by its own credentials.
export function tokenOfProgram(issuer, id) {
  const basic = btoa(`${id}:${encodeURIComponent(`the secret of ${id}`)}`);
  const body = { grant_type: "client_credentials", scope: "shop" };
  return granted(issuer, { Authorization: `Basic ${basic}` }, body);
}

// An access token for a person, who signs in at the provider with a browser and lets the
// application use the shop: authorization code and PKCE.
export async function tokenOfPerson(issuer, name) {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    response_type: "code",
    client_id: application.client_id,
    redirect_uri: callback,
    scope: "openid shop",
    resource: audience,
    state: "ours",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const back = await signInAtProvider(new Browser(), `${issuer}/auth?${query}`, name, callback);
  const { searchParams } = new URL(back);
  assert.equal(searchParams.get("state"), "ours", back);
  return granted(issuer, {}, {
    grant_type: "authorization_code",
    code: searchParams.get("code"),
    redirect_uri: callback,
    client_id: application.client_id,
    code_verifier: verifier,
    resource: audience,
  });
}
