// An Express application with Auth.js: a person signs in with Tidegate, and out.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { ExpressAuth, getSession } from "@auth/express";
import express from "express";
import { Browser, passwordGrant, post } from "../demo.mjs";

const home = process.env.TIDEGATE_URL;
const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const site = `http://127.0.0.1:${server.address().port}`;

const owner = (await passwordGrant(home, "demo", "demo1234")).body.access_token;
const email = { email: "alice@example.com" };
const patched = await fetch(`${home}/api/v4/users/alice`, {
  method: "PATCH", redirect: "manual", body: JSON.stringify(email),
  headers: { "Content-Type": "application/json", Authorization: `Bearer ${owner}` },
});
assert.equal(patched.status, 303);
const registered = await post(`${home}/api/v4/clients`, {
  id: "authjs", name: "Auth.js", redirect_uri: [`${site}/auth/callback/tidegate`],
}, owner);
assert.equal(registered.status, 201, JSON.stringify(registered.body));

const config = {
  secret: "a secret of the application, for its cookies",
  trustHost: true,
  providers: [{
    id: "tidegate", name: "Tidegate", type: "oidc", issuer: home,
    clientId: "authjs", clientSecret: registered.body.secret,
    checks: ["pkce", "state", "nonce"],
  }],
  callbacks: {
    jwt: ({ token, account }) => (account ? { ...token, access: account.access_token } : token),
    session: ({ session, token }) => ({ ...session, access: token.access, sub: token.sub }),
  },
};
const app = express();
app.use("/auth", ExpressAuth(config));
app.get("/", async (request, answer) => answer.json(await getSession(request, config)));
server.on("request", app);

const browser = new Browser();
/** Follows redirects until a page is shown. */
async function settle(page) {
  for (let steps = 0; page.location && steps < 12; steps += 1) page = await browser.get(page.location);
  return page;
}

const csrf = async () => JSON.parse((await browser.get(`${site}/auth/csrf`)).text).csrfToken;
const send = async (path) => browser.send(`${site}${path}`, {
  method: "POST",
  body: new URLSearchParams({ csrfToken: await csrf(), callbackUrl: `${site}/` }),
});

assert.equal((await browser.get(`${site}/`)).text, "null");
let page = await settle(await send("/auth/signin/tidegate"));
assert.match(page.text, /Sign in/);
page = await browser.submit(page, "sign_in", { username: "alice", password: "alice1234" });
page = await settle(page);
assert.match(page.text, /see your email address/);
page = await settle(await browser.submit(page, "decide", { decision: "allow" }));
const session = JSON.parse(page.text);
assert.deepEqual(session.user, { name: "alice", email: "alice@example.com" }, page.text);

// The access token in the session is one of the API.
const rows = await post(`${home}/api/v4/sql`, { q: "select current_user::text as role" }, session.access);
assert.deepEqual(rows.body.data, [{ role: "demo/alice" }]);

await send("/auth/signout");
assert.equal((await browser.get(`${site}/`)).text, "null");
console.log("Auth.js: sign-in with Express by discovery, session, access token, sign-out");
server.closeAllConnections();
server.close();
