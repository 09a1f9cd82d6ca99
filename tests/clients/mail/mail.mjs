// The email of a demo, as a real SMTP server receives it over TLS.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { Browser, demo, passwordGrant, post } from "../demo.mjs";

const scratch = process.env.CLIENT_SCRATCH;
const certificate = join(scratch, "certificate.pem");

const messages = [];
let arrived = () => {};
const server = new SMTPServer({
  secure: true,
  key: await readFile(join(scratch, "key.pem")),
  cert: await readFile(certificate),
  onAuth: ({ username, password }, session, done) =>
    username === "service" && password === "secret"
      ? done(null, { user: username })
      : done(new Error("who are you?")),
  async onData(stream, session, done) {
    let raw = "";
    for await (const chunk of stream) raw += chunk;
    const [head, ...body] = raw.split("\r\n\r\n");
    let text = body.join("\r\n\r\n");
    if (/content-transfer-encoding: quoted-printable/i.test(head)) {
      text = text
        .replaceAll("=\r\n", "")
        .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    }
    messages.push({ from: session.envelope.mailFrom.address, to: session.envelope.rcptTo.map((to) => to.address), head, text });
    done();
    arrived();
  },
});
server.on("error", (error) => console.error("smtp:", error.message));
server.listen(0, "127.0.0.1");
await once(server.server, "listening");
const port = server.server.address().port;

async function message(count) {
  const late = setTimeout(() => {
    console.error(`message ${count} did not come`);
    process.exit(1);
  }, 60_000);
  while (messages.length < count) await new Promise((resolve) => (arrived = resolve));
  clearTimeout(late);
  assert.equal(messages.length, count, "one message too many");
  return messages[count - 1];
}
const link = ({ text }) => /https?:\S+/.exec(text)[0];

const { url, stop } = await demo({
  TIDEGATE_SMTP_URL: `smtps://service:secret@localhost:${port}`,
  TIDEGATE_MAIL_FROM: "Demo <demo@example.com>",
  TIDEGATE_OPEN_SIGNUP: "false",
  // Where rustls-native-certs looks for authorities.
  SSL_CERT_FILE: certificate,
});
try {
  const owner = (await passwordGrant(url, "demo", "demo1234")).body.access_token;
  const patched = await fetch(`${url}/api/v4/users/alice`, {
    method: "PATCH",
    redirect: "manual",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${owner}` },
    body: JSON.stringify({ email: "Alice@example.com" }),
  });
  assert.equal(patched.status, 303);

  // A password that was forgotten. Names that are not there look the same and get no message.
  const browser = new Browser();
  const ask = async (username) => {
    const page = await browser.get(`${url}/reset?database=demo`);
    return browser.submit(page, "ask", { username, database: "demo" });
  };
  const answers = [];
  for (const name of ["nobody", "nobody@example.com", "demo", "guest", "alice@EXAMPLE.com"]) {
    answers.push(await ask(name));
  }
  const same = (page) => page.text;
  assert.ok(answers.every((page) => page.status === 200 && same(page) === same(answers[0])));
  const reset = await message(1);
  assert.deepEqual(reset.to, ["Alice@example.com"]);
  assert.equal(reset.from, "demo@example.com");
  assert.match(reset.head, /^Subject: A new password for alice$/m);
  assert.ok(link(reset).startsWith(`${url}/reset?token=`), link(reset));

  const session = (await passwordGrant(url, "alice", "alice1234")).body.access_token;
  const ask1 = { q: "select 1" };
  assert.equal((await post(`${url}/api/v4/sql`, ask1, session)).status, 200);
  // Another browser follows it: the message may be read on another device.
  const other = new Browser();
  let page = await other.get(link(reset));
  assert.equal(page.status, 200);
  const short = await other.submit(page, "choose", { password: "short" });
  assert.equal(short.status, 400);
  assert.match(short.text, /8 to 256 characters/);
  const chosen = await other.submit(page, "choose", { password: "another-1234" });
  assert.equal(chosen.status, 200, chosen.text);
  assert.equal((await post(`${url}/api/v4/sql`, ask1, session)).status, 401, "signed out");
  assert.equal((await passwordGrant(url, "alice", "alice1234")).status, 400);
  assert.equal((await passwordGrant(url, "alice", "another-1234")).status, 200);
  // The link is good for one password, and for no other user.
  assert.equal((await other.get(link(reset))).status, 400);
  assert.equal((await other.submit(page, "choose", { password: "third-12345" })).status, 400);
  const forged = link(reset).slice(0, -2) + (link(reset).endsWith("AA") ? "BB" : "AA");
  assert.equal((await other.get(forged)).status, 400);

  // Who follows a link of a message has the address.
  const info = async (username, password) => {
    const body = { grant_type: "password", username, password, database: "demo",
      client_id: "demo-app", scope: "openid email" };
    const { access_token: token } = (await post(`${url}/api/v4/oauth`, body)).body;
    const headers = { Authorization: `Bearer ${token}` };
    const { email, email_verified: verified } = await (
      await fetch(`${url}/api/v4/oauth/userinfo`, { headers })
    ).json();
    return [email, verified];
  };
  assert.deepEqual(await info("alice", "another-1234"), ["Alice@example.com", true]);

  // A sign-up is nothing before its message is answered.
  const callback = "https://shop.example/back";
  const client = await post(
    `${url}/api/v4/clients`,
    { id: "shop", name: "Shop", redirect_uri: [callback], public: true, allow_signup: true,
      signup_kind: "member", signup_group: "people" },
    owner,
  );
  assert.equal(client.status, 201);
  const form = `${url}/signup/?client_id=shop&parentdb=demo&redirect_uri=${encodeURIComponent(callback)}`;
  const person = { username: "zoe", email: "zoe@example.com", password: "zoe-12345" };
  page = await browser.get(form);
  const sent = await browser.submit(page, "sign_up", person);
  assert.equal(sent.status, 200, sent.text);
  assert.match(sent.text, /Check your email/);
  const invitation = await message(2);
  assert.deepEqual(invitation.to, ["zoe@example.com"]);
  assert.match(invitation.head, /^Subject: Confirm your account for Shop$/m);
  assert.ok(!invitation.text.includes("zoe-12345"));
  assert.equal((await passwordGrant(url, "zoe", "zoe-12345")).status, 400);
  const taken = await browser.submit(page, "sign_up", { ...person, username: "alice" });
  assert.equal(taken.status, 409);

  // To look at the link makes nothing; the button does.
  const confirmation = await other.get(link(invitation));
  assert.equal(confirmation.status, 200);
  assert.equal((await passwordGrant(url, "zoe", "zoe-12345")).status, 400);
  const confirmed = await other.submit(confirmation, "confirm", {});
  assert.equal(confirmed.status, 303, confirmed.text);
  assert.equal(confirmed.location, callback);
  const zoe = (await passwordGrant(url, "zoe", "zoe-12345")).body.access_token;
  const claims = JSON.parse(Buffer.from(zoe.split(".")[1], "base64url"));
  assert.deepEqual([claims.kind, claims.group], ["member", "people"], "the kind that the client says");
  assert.equal((await post(`${url}/api/v4/sql`, ask1, zoe)).status, 403, "members have no SQL");
  assert.deepEqual(await info("zoe", "zoe-12345"), ["zoe@example.com", true]);
  assert.match((await other.get(`${url}/account`)).text, /zoe/);
  // The link is good once.
  const again = await other.submit(await other.get(link(invitation)), "confirm", {});
  assert.equal(again.status, 400);
  assert.equal((await passwordGrant(url, "zoe", "zoe-12345")).status, 200);
  // A link for one purpose is none for another.
  const swapped = link(invitation).replace("/signup/confirm", "/reset");
  assert.equal((await other.get(swapped)).status, 400);
  assert.equal(messages.length, 2);

  // A link instead of the password: it continues what the person came for, in that browser.
  const pending = `${url}/auth?${new URLSearchParams({
    response_type: "code",
    client_id: "shop",
    redirect_uri: callback,
    state: "s1",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  })}`;
  const person2 = new Browser();
  page = await person2.get(pending);
  const wanted = { by: "email", database: "demo" };
  const nobody = await person2.submit(page, "sign_in", { ...wanted, username: "nobody" });
  const asked = await person2.submit(page, "sign_in", { ...wanted, username: "zoe@example.com" });
  assert.equal(asked.status, 200, asked.text);
  assert.equal(asked.text, nobody.text);
  const signIn = await message(3);
  assert.deepEqual(signIn.to, ["zoe@example.com"]);
  assert.match(signIn.head, /^Subject: Sign in as zoe$/m);
  assert.ok(link(signIn).startsWith(`${url}/auth/email?token=`), link(signIn));
  // A scanner that follows the link does not use it, and has no button to press.
  const scanned = await new Browser().get(link(signIn));
  assert.equal(scanned.status, 400);
  assert.ok(!scanned.text.includes("<form"), scanned.text);
  page = await person2.get(link(signIn));
  assert.equal(page.status, 200, page.text);
  const opened = await person2.submit(page, "email", {});
  assert.equal(opened.status, 303, opened.text);
  assert.equal(opened.location, pending);
  assert.match((await person2.get(opened.location)).text, /Allow access/);
  assert.match((await person2.get(`${url}/account`)).text, /zoe/);
  assert.equal((await other.submit(page, "email", {})).status, 403, "not in another browser");
  const audited = await fetch(`${url}/api/v4/audit`, { headers: { Authorization: `Bearer ${owner}` } });
  const { events } = await audited.json();
  assert.ok(events.some((e) => e.event === "signed_in" && e.detail === "email link" && e.user === "zoe"));
  assert.equal(messages.length, 3);
  console.log("messages: reset, sign-up and sign-in over smtps with AUTH, links are single use and sealed");
} finally {
  await stop();
  server.close();
}
