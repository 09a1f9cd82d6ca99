// A single-page application with oidc-client-ts, in Chromium.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { passwordGrant, post } from "../demo.mjs";

const home = process.env.TIDEGATE_URL;
const script = await readFile("node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js");
const html = await readFile("page.html");
const server = createServer((request, answer) => {
  const wanted = request.url.startsWith("/oidc-client-ts.js");
  answer.setHeader("Content-Type", wanted ? "text/javascript" : "text/html");
  answer.end(wanted ? script : html);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const site = `http://127.0.0.1:${server.address().port}`;

const owner = (await passwordGrant(home, "demo", "demo1234")).body.access_token;
const registered = await post(`${home}/api/v4/clients`, {
  id: "oidc-client-ts", name: "oidc-client-ts", public: true, confirm: false,
  redirect_uri: [`${site}/callback`, `${site}/silent`, `${site}/out`],
}, owner);
assert.equal(registered.status, 201, JSON.stringify(registered.body));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${site}/?authority=${encodeURIComponent(home)}`);
  await page.evaluate(() => void manager.signinRedirect({ nonce: "of the page" }));
  await page.fill("#username", "alice");
  await page.fill("#password", "alice1234");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${site}/callback?**`);
  const profile = await page.evaluate(async () => (await manager.signinCallback()).profile);
  assert.deepEqual([profile.sub, profile.name, profile.iss], ["demo/alice", "alice", home]);

  // By the refresh token, and by `prompt=none` in a frame.
  const refreshed = await page.evaluate(async () => (await manager.signinSilent()).profile.sub);
  assert.equal(refreshed, "demo/alice");
  const framed = await page.evaluate(async () => {
    const user = await manager.signinSilent({ forceIframeAuth: true });
    return [user.profile.sub, user.access_token];
  });
  assert.equal(framed[0], "demo/alice");
  const rows = await post(`${home}/api/v4/sql`, { q: "select 1 as one" }, framed[1]);
  assert.equal(rows.status, 200);

  await page.evaluate(() => void manager.signoutRedirect());
  await page.waitForURL(`${site}/out**`);
  const refused = await page.evaluate(() =>
    manager.signinSilent({ forceIframeAuth: true }).then(() => "signed in", (error) => error.error));
  assert.equal(refused, "login_required");
  console.log("oidc-client-ts: sign-in, userinfo, refresh, prompt=none in a frame, sign-out");
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
}
