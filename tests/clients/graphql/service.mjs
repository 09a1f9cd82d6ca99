// A demo's addresses and its owner.
import assert from "node:assert/strict";

export const base = process.env.TIDEGATE_URL;
export const endpoint = (schema) => `${base}/api/graphql/schema/${encodeURIComponent(schema)}`;

const owner = { username: "demo", password: "demo1234", client_id: "demo-app" };
const members = process.env.TIDEGATE_TEST_SIGN_IN ? JSON.parse(process.env.TIDEGATE_TEST_SIGN_IN) : owner;

const signIn = async () => {
  const answer = await fetch(`${base}/api/v4/oauth`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ grant_type: "password", ...members }),
  });
  return (await answer.json()).access_token;
};

export const authorization = `Bearer ${await signIn()}`;

// Runs statements as the owner, in one transaction.
export const sql = async (...statements) => {
  const answer = await fetch(`${base}/api/v4/sql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: authorization },
    body: JSON.stringify(statements.map((q) => ({ q }))),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
};

// Asks as the owner.
export const ask = async (schema, query, variables) => {
  const answer = await fetch(endpoint(schema), {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: authorization },
    body: JSON.stringify({ query, variables }),
  });
  assert.equal(answer.status, 200);
  return answer.json();
};
