// Walks the conformance suite's test plans and says for each module how it ends. The page
// docs/reference/openid-conformance.md has to say the same.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { createLocalJWKSet } from "jose";
import { demo, passwordGrant, post } from "../demo.mjs";
import * as basic from "./basic.mjs";
import * as checks from "./checks.mjs";
import * as config from "./config.mjs";
import * as logout from "./logout.mjs";
import { Party, PERSON } from "./party.mjs";

const PLANS = [basic, config, logout];
const PAGE = new URL("../../../docs/reference/openid-conformance.md", import.meta.url);
const WORDS = ["passed", "warning", "not applicable", "differs"];
const scratch = process.env.CLIENT_SCRATCH;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function document(url) {
  const answer = await fetch(url);
  return { url, status: answer.status, headers: answer.headers, body: await answer.json() };
}

/** What an application knows of the provider: its documents, and two registered clients. */
async function provider(url) {
  const owner = (await passwordGrant(url, "demo", "demo1234")).body.access_token;
  const make = async (path, body) => {
    const made = await post(`${url}/api/v4/${path}`, body, owner);
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return made.body;
  };
  await make("users", {
    name: PERSON.username, password: PERSON.password, email: "conformist@example.com",
    properties: { name: "Connie Formist" },
  });
  const clients = await Promise.all(["conformance", "conformance-second"].map(async (id) => {
    const callback = `https://${id}.example/callback`;
    const afterSignOut = `https://${id}.example/post_logout_redirect`;
    const { secret } = await make("clients", { id, name: id, redirect_uri: [callback, afterSignOut] });
    return { id, secret, callback, afterSignOut };
  }));
  const discovery = await document(`${url}/.well-known/openid-configuration`);
  const keySet = await document(discovery.body.jwks_uri);
  return { server: discovery.body, discovery, keySet, keys: createLocalJWKSet(keySet.body), clients };
}

/** How a module ends: a word of the page's table, and what there is to say. */
async function outcome(found, module) {
  const party = new Party(found);
  try {
    await module(party);
  } catch (error) {
    return { word: "FAILED", notes: [error.stack] };
  }
  const { differences, skipped, warnings } = party;
  if (differences.length > 0) return { word: "differs", notes: differences };
  if (skipped.length > 0) return { word: "not applicable", notes: skipped };
  return { word: warnings.length > 0 ? "warning" : "passed", notes: warnings };
}

/** The word that the page's tables have for each module. */
function documented(page) {
  const rows = page.matchAll(/^\| (`oidcc-.*?) \| ([a-z ]+)/gm);
  return new Map([...rows].flatMap(([, names, word]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => [name, word.trim()])));
}

/** Without a code challenge, which the suite's requests lack, there is no code. */
async function challengeIsMandatory(found) {
  const party = new Party(found);
  const without = { code_challenge: undefined, code_challenge_method: undefined };
  const { request, url } = await party.authorize(without);
  checks.refusal(found.server, url, request.state, ["invalid_request"]);
}

/** Walks one plan; returns its row of the page's first table. */
async function walk({ plan, modules }, found, words) {
  console.log(`\n${plan}`);
  const names = Object.keys(modules);
  const counts = Object.fromEntries(WORDS.map((word) => [word, 0]));
  // Together, because two of them wait; each has a browser of its own.
  const ends = await Promise.all(names.map((name) => outcome(found, modules[name])));
  for (const [index, { word, notes }] of ends.entries()) {
    const name = names[index];
    console.log(`  ${name}: ${[word, ...notes].join(": ")}`);
    if (word in counts) counts[word] += 1;
    if (words.get(name) !== word) {
      console.log(`    The page says: ${words.get(name)}`);
      process.exitCode = 1;
    }
    words.delete(name);
  }
  return `| \`${plan}\` | ${[names.length, ...WORDS.map((word) => counts[word])].join(" | ")} |`;
}

const port = await freePort();
const { url, stop } = await demo({
  TIDEGATE_LISTEN: `127.0.0.1:${port}`,
  TIDEGATE_PUBLIC_URL: `https://127.0.0.1:${port}`,
  TIDEGATE_TLS_CERTIFICATE: join(scratch, "certificate.pem"),
  TIDEGATE_TLS_KEY: join(scratch, "key.pem"),
});
try {
  const found = await provider(url);
  const page = await readFile(PAGE, "utf8");
  const words = documented(page);
  const rows = [];
  for (const each of PLANS) rows.push(await walk(each, found, words));
  console.log(`\n| plan | modules | ${WORDS.join(" | ")} |\n${rows.join("\n")}`);
  await challengeIsMandatory(found);
  console.log("A request without code_challenge, as the suite sends it: invalid_request.");
  assert.deepEqual([...words.keys()], [], "the page has modules that no plan has");
  if (process.exitCode) console.log("A module failed, or ends in another way than the page says.");
  else for (const row of rows) assert.ok(page.includes(row), `the page lacks the row ${row}`);
} finally {
  await stop();
}
