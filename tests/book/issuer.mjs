// The issuer of docs/how-to/external-issuers.md: it publishes its keys, and signs tokens with the
// claims in the query of /token.
import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" };
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

function token(claims) {
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now, exp: now + 300 };
  const signed = `${encoded({ alg: "RS256", kid: "1" })}.${encoded({ iss: issuer, ...times, ...claims })}`;
  return `${signed}.${sign("sha256", signed, privateKey).toString("base64url")}`;
}

const server = createServer((request, answer) => {
  const url = new URL(request.url, issuer);
  const documents = {
    "/.well-known/openid-configuration": () => JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` }),
    "/keys": () => JSON.stringify({ keys: [key] }),
    "/token": () => token(JSON.parse(url.searchParams.get("claims"))),
  };
  const document = documents[url.pathname];
  answer.writeHead(document ? 200 : 404).end(document?.());
});
let issuer;
server.listen(0, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  console.log(issuer);
});
