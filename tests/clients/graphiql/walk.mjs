// A person in GraphiQL: a query as anybody, a mutation with a pasted token, a subscription, signing
// in through `/auth`, dark and light. Nothing but this server is asked, and no policy is broken.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

import { demo, passwordGrant, post } from "../demo.mjs";

const { url: home, stop } = await demo({ TIDEGATE_GRAPHIQL_DIR: `${process.env.CLIENT_SCRATCH}/graphiql` });
const address = `${home}/api/graphql/schema/public`;
const alice = (await passwordGrant(home, "alice", "alice1234")).body.access_token;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** A browser of its own, that remembers whom its pages asked and what they complained about. */
async function fresh(options = {}) {
  const context = await browser.newContext(options);
  const asked = new Set();
  const complaints = [];
  const watch = (page) => {
    page.setDefaultTimeout(60_000);
    page.on("websocket", (socket) => asked.add(new URL(socket.url()).host));
    page.on("console", (message) => {
      if (message.type() === "error" || /Content Security Policy/.test(message.text())) {
        complaints.push(message.text());
      }
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
  };
  context.on("page", watch);
  context.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:") asked.add(host);
  });
  const page = await context.newPage();
  const end = async () => {
    assert.deepEqual([...asked], [new URL(home).host], "only this server was asked");
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return { page, end };
}

const editor = (page) => page.getByRole("region", { name: "Operation Editor" }).locator(".monaco-editor").first();

/** Writes a document in the editor, as a person would. */
async function write(page, text) {
  await editor(page).click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.press("Delete");
  // Without the editor's own closing brackets.
  await page.keyboard.insertText(text);
}

const run = (page) => page.getByRole("button", { name: /^Execute/ }).click();

/** Waits until the response shows a text. */
async function shows(page, text) {
  const response = page.locator(".result-window .view-lines");
  await response.filter({ hasText: text }).waitFor();
}

const paste = async (page, token) => {
  await page.getByLabel("Access token").fill(token);
  await page.getByLabel("Access token").press("Enter");
};

/** Waits until GraphiQL has read the schema again, after `act`. */
async function rereads(page, act) {
  const read = page.waitForResponse((answer) => answer.request().postData()?.includes("IntrospectionQuery"));
  await act();
  const answer = await (await read).json();
  return answer.data.__schema;
}

// Anybody asks, with completion from the schema.
const { page, end } = await fresh({ colorScheme: "light" });
let schema = await rereads(page, () => page.goto(address));
const mutations = (of) => of.types.find((type) => type.name === of.mutationType?.name)?.fields.length ?? 0;
const anybodys = mutations(schema);
assert.equal(await page.title(), "GraphiQL public");
await write(page, "{ getArtists(limit: 2, orderBy: {id: \"asc\"}) { id name } }");
const first = await post(address, { query: "{ getArtists(limit: 1, orderBy: {id: \"asc\"}) { name } }" });
await run(page);
await shows(page, first.body.data.getArtists[0].name);

await write(page, "{ getArt");
await page.keyboard.press("Control+Space");
await page.locator(".suggest-widget").getByText("getArtists", { exact: true }).first().waitFor();
await page.keyboard.press("Escape");

// A pasted token: another schema, and a change.
schema = await rereads(page, () => paste(page, alice));
assert.ok(mutations(schema) > anybodys, "alice may change more");
await write(page, "mutation { insertPlaylists(data: {name: \"Written in GraphiQL\"}) { id name } }");
await run(page);
await shows(page, "Written in GraphiQL");
const found = await post(address, { query: "{ getPlaylists(where: {name: \"Written in GraphiQL\"}) { id } }" }, alice);
assert.equal(found.body.data.getPlaylists.length, 1, JSON.stringify(found.body));

// A subscription over the WebSocket shows each change until it is stopped.
const socket = page.waitForEvent("websocket");
await write(page, "subscription { PlaylistsMessageAdded { id name } }");
await run(page);
const opened = await socket;
// The first event may come only from a row that was written after the server began to listen.
const change = (name) => post(address, {
  query: "mutation ($name: String) { insertPlaylists(data: {name: $name}) { id } }",
  variables: { name },
}, alice);
const frames = opened.waitForEvent("framereceived", (frame) => String(frame.payload).includes('"next"'));
let seen = false;
frames.then(() => (seen = true));
for (let count = 0; !seen && count < 100; count += 1) {
  await change(`Heard ${count}`);
  await Promise.race([frames, new Promise((resolve) => setTimeout(resolve, 100))]);
}
await shows(page, "Heard ");
const closed = opened.waitForEvent("close");
await page.getByRole("button", { name: /^Stop/ }).click();
await closed;

// The documentation.
await page.getByRole("button", { name: "Show Documentation Explorer" }).click();
await page.getByRole("link", { name: "Query", exact: true }).click();
await page.getByText("getArtists", { exact: true }).first().waitFor();
await end();

// Signing in through the service's own pages; the session lives as long as the tab.
{
  const { page, end } = await fresh({ colorScheme: "dark" });
  await page.goto(address);
  await page.getByLabel("Client", { exact: true }).fill("demo-app");
  const popup = page.waitForEvent("popup");
  await page.getByRole("button", { name: "Sign in" }).click();
  const window = await popup;
  await window.getByLabel("User name").fill("alice");
  await window.getByLabel("Password").fill("alice1234");
  await window.click("form button[type=submit]");
  schema = await rereads(page, async () => {
    const gone = window.waitForEvent("close");
    // It may close before the click has been told of.
    await window.getByRole("button", { name: "Allow" }).click().catch((error) => {
      if (!window.isClosed()) throw error;
    });
    await gone;
  });
  assert.ok(mutations(schema) > anybodys, "the session is alice's");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  const dark = await page.evaluate(() => getComputedStyle(document.querySelector(".graphiql-container")).backgroundColor);
  const [red, green, blue] = dark.match(/[\d.]+/g).map(Number);
  assert.ok(red + green + blue < 200, `dark where the system is dark: ${dark}`);
  await rereads(page, () => page.reload());
  schema = await rereads(page, () => page.getByRole("button", { name: "Sign out" }).click());
  assert.equal(mutations(schema), anybodys, "after signing out anybody asks");
  await end();
}

await browser.close();
await stop();
console.log("GraphiQL: query, mutation, subscription, completion, sign-in, no other host");
