// Passkeys in Chromium, with a virtual authenticator. They need a host name, and the demo is at an
// IP address, so a second node serves the demo's tenant at `localhost`.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { join } from 'node:path';
import { PATIENCE, launch } from './chromium.mjs';

const { CLIENT_SCRATCH, DATABASE_URL, TIDEGATE_TEST_BINARY, TIDEGATE_URL } = process.env;

const free = http.createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const { port } = free.address();
free.close();
const home = `http://localhost:${port}`;
const admin = new URL(DATABASE_URL);
admin.pathname = '/postgres';
const node = spawn(TIDEGATE_TEST_BINARY, [
  'serve', '--listen', `127.0.0.1:${port}`, '--public-url', home, '--admin-url', admin.href,
  '--control-database', 'tidegate', '--master-key-file', join(CLIENT_SCRATCH, '../demo/master.key'),
], { env: { PATH: process.env.PATH }, stdio: ['ignore', 'ignore', 'inherit'] });
process.on('exit', () => node.kill());
for (const late = Date.now() + PATIENCE; ;) {
  if (node.exitCode !== null) throw new Error('the node ended');
  const ready = await fetch(`${home}/readyz`).then((answer) => answer.ok, () => false);
  if (ready) break;
  assert.ok(Date.now() < late, 'the node is not ready');
}

const owner = await fetch(`${TIDEGATE_URL}/api/v4/oauth`, {
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'password', username: 'demo', password: 'demo1234', client_id: 'demo-app',
  }),
}).then((answer) => answer.json());
const made = await fetch(`${TIDEGATE_URL}/api/v4/clients`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${owner.access_token}` },
  body: JSON.stringify({
    id: 'strict', name: 'Strict', redirect_uri: ['http://127.0.0.1:5173/callback'], public: true,
    two_factor: true,
  }),
});
assert.equal(made.status, 201);
const strict = `${home}/auth?${new URLSearchParams({
  response_type: 'code', client_id: 'strict', redirect_uri: 'http://127.0.0.1:5173/callback',
  state: 's', code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
})}`;

const browser = await launch();
const context = await browser.newContext();
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE);
page.on('console', (message) => assert.doesNotMatch(message.text(), /Content Security Policy/));
page.on('pageerror', (error) => { throw error; });
const devtools = await context.newCDPSession(page);
await devtools.send('WebAuthn.enable');
const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
  options: {
    protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true,
  },
});
const verifies = (isUserVerified) =>
  devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
const button = (name) => page.getByRole('button', { name, exact: true });
const shows = (text) => page.getByText(text).first().waitFor();
const byPasskey = () => button('Sign in with a passkey').click();
const signOut = async () => {
  await page.goto(`${home}/account`);
  await button('Sign out').last().click();
  await shows('You are signed out');
};

// The owner of the account adds a passkey after a sign-in with the password.
await page.goto(`${home}/account`);
await page.getByLabel('User name').fill('alice');
await page.getByLabel('Password').fill('alice1234');
await page.getByLabel('Database').fill('demo');
await button('Sign in').click();
await button('Add a passkey').click();
await verifies(false);
await button('Create a passkey').click();
await shows('The browser gave no passkey');
await verifies(true);
await button('Create a passkey').click();
await shows('The passkey is added');
const { credentials } = await devtools.send('WebAuthn.getCredentials', { authenticatorId });
assert.equal(credentials.length, 1);
assert.equal(credentials[0].rpId, 'localhost');
assert.ok(credentials[0].isResidentCredential);
await signOut();

// It signs in without a name, only if the person is verified.
await page.goto(`${home}/account`);
await verifies(false);
await byPasskey();
await shows('The browser gave no passkey');
await verifies(true);
const old = (await context.cookies(home)).map(({ name, value }) => `${name}=${value}`).join('; ');
const posted = page.waitForRequest((request) => request.method() === 'POST');
await byPasskey();
await shows('Your account');
await shows('alice');
await shows('last used');

// The answer of the authenticator works once, and in that browser.
const { body, headers } = await posted.then((request) => ({
  body: request.postData(), headers: { 'content-type': request.headers()['content-type'] },
}));
const replay = (cookie) => fetch(`${home}/account`, {
  method: 'POST', redirect: 'manual', body, headers: { ...headers, cookie },
});
const again = await replay(old);
assert.equal(again.status, 400);
assert.match(await again.text(), /This passkey does not work here/);
assert.equal((await replay('')).status, 403);

// It counts as a second factor: a client that demands one asks for no code.
await signOut();
await page.goto(strict);
await byPasskey();
await shows('Allow access?');
await page.goto(`${home}/account`);

// A removed passkey signs nobody in.
await button('Remove the passkey of Chrome on Linux').click();
await shows('The passkey is removed');
await signOut();
await page.goto(`${home}/account`);
await byPasskey();
await shows('This passkey does not work here');

// Without JavaScript there is no button.
const plain = await browser.newContext({ javaScriptEnabled: false });
const bare = await plain.newPage();
await bare.goto(`${home}/account`);
assert.ok(await bare.getByLabel('User name').isVisible());
assert.ok(!(await bare.getByText('Sign in with a passkey').isVisible()));

// At an IP address browsers allow none.
await bare.goto(`${TIDEGATE_URL}/account`);
assert.equal(await bare.getByText('Sign in with a passkey').count(), 0);

await browser.close();
node.kill();
await once(node, 'exit');
console.log('passkeys: added, used as the only and as the second factor, not replayed, removed');
process.exit(0);
