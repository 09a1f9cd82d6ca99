// A person in Chromium: code, consent, device, sign-up, two-step sign-in, account, sign-out.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { PATIENCE, launch } from './chromium.mjs';
import { oneTimeCode } from './code.mjs';

const home = process.env.TIDEGATE_URL;
const page_of_application = await readFile('application.html');

const post = async (path, body, token) => {
  const headers = { 'content-type': 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(home + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.json();
};

// The application, at an origin of its own; a loopback address may have any port.
const server = http.createServer((_, answer) => {
  answer.setHeader('content-type', 'text/html');
  answer.end(page_of_application);
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const application = `http://127.0.0.1:${server.address().port}`;

const owner = (await post('/api/v4/oauth', {
  grant_type: 'password', username: 'demo', password: 'demo1234', client_id: 'demo-app',
})).access_token;
await post('/api/v4/clients', {
  id: 'notes', name: 'Notes <b>&', redirect_uri: ['http://127.0.0.1:5173/callback'], public: true,
  allow_signup: true, two_factor: true,
}, owner);

const browser = await launch();

/** A browser of its own, that fails the test when a page breaks its own policy. */
async function fresh(options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('console', (message) => {
    assert.doesNotMatch(message.text(), /Content Security Policy/);
  });
  return page;
}

async function start(page, client) {
  await page.goto(application);
  await page.evaluate(([home, client]) => begin(home, client), [home, client]);
  await page.waitForURL(`${home}/**`);
}

async function said(page, text) {
  await page.waitForURL(`${application}/**`);
  await page.waitForFunction((text) => document.getElementById('said').textContent === text, text);
}

const submit = (page) => page.click('form button[type=submit]');

async function signIn(page, username, password) {
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password').fill(password);
  await submit(page);
}

// Code and consent, without JavaScript on our pages and with a wrong password first.
{
  const page = await fresh();
  await start(page, 'demo-app');
  assert.equal(await page.locator('script').count(), 0);
  // A page gives the focus with its first frame, which may come after the page.
  await page.waitForFunction(() => document.activeElement?.name === 'username');
  await signIn(page, 'alice', 'wrong-password');
  assert.match(await page.getByRole('alert').textContent(), /Wrong/);
  const field = page.getByLabel('Password');
  assert.equal(await field.getAttribute('aria-describedby'), 'password-error');
  await signIn(page, 'alice', 'alice1234');
  await page.getByRole('button', { name: 'Allow' }).click();
  await said(page, 'signed in as demo/alice');
  await start(page, 'demo-app');
  await page.getByRole('button', { name: 'Deny' }).click();
  await said(page, 'access_denied');
  await page.context().close();
}

// A device.
{
  const device = await post('/api/v4/oauth/device', { client_id: 'demo-app' });
  const page = await fresh({ javaScriptEnabled: false });
  await page.goto(device.verification_uri);
  await page.getByLabel('Code').fill(device.user_code.toLowerCase().replace('-', ''));
  await submit(page);
  await signIn(page, 'alice', 'alice1234');
  assert.equal(await page.locator('.code').textContent(), device.user_code);
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByText('Device connected').waitFor();
  const tokens = await post('/api/v4/oauth', {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'demo-app',
    device_code: device.device_code,
  });
  assert.ok(tokens.access_token, JSON.stringify(tokens));
  await page.context().close();
}

// Sign-up, two-step sign-in, account, sign-out.
{
  const page = await fresh({ colorScheme: 'dark', viewport: { width: 320, height: 640 } });
  await start(page, 'notes');
  await page.getByRole('link', { name: 'Sign up' }).click();
  await page.getByLabel('User name').fill('mina');
  await page.getByLabel('E-mail').fill('mina@example.org');
  await page.getByLabel('Password').fill('mina-1234');
  await submit(page);
  // Of a page that a button leads to is waited for what only it has: questions do not wait.
  await page.locator('svg.qr').waitFor();
  await page.getByText('Cannot scan?').click();
  const secret = (await page.locator('.secret').textContent()).replaceAll(' ', '');
  await page.getByLabel('Code from the app').fill(oneTimeCode(secret));
  await submit(page);
  await page.locator('.codes code').nth(9).waitFor();
  const codes = await page.locator('.codes code').allTextContents();
  assert.equal(codes.length, 10);
  await page.getByRole('link', { name: 'I have kept them' }).click();
  // A name is text.
  await page.getByText('Notes <b>&').waitFor();
  await page.waitForLoadState();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 320, `a narrow screen needs no scrolling: ${wide}`);
  await page.getByRole('button', { name: 'Allow' }).click();
  await said(page, 'signed in as demo/mina');

  await page.goto(`${home}/account`);
  await page.getByRole('button', { name: /^End the access of/ }).click();
  await page.getByRole('status').waitFor();
  await page.getByText('None has access.').waitFor();
  await page.getByLabel('Current password').fill('mina-1234');
  await page.getByLabel('New password').fill('mina-5678');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Your password is changed').waitFor();

  await page.goto(`${home}/signout?redirect_uri=${encodeURIComponent(`${application}/callback`)}`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(`${application}/callback`);
  await start(page, 'notes');
  await signIn(page, 'mina', 'mina-5678');
  await page.getByLabel('Code').fill(codes[0]);
  await submit(page);
  await page.getByRole('button', { name: 'Allow' }).click();
  await said(page, 'signed in as demo/mina');
  await page.context().close();
}

// No page of ours is shown in a frame.
{
  const page = await browser.newPage();
  await page.goto(application);
  const refused = page.waitForEvent('console', {
    predicate: (message) => message.text().includes("frame-ancestors 'none'"), timeout: PATIENCE,
  });
  await page.evaluate((address) => {
    const frame = document.createElement('iframe');
    frame.src = address;
    document.body.append(frame);
  }, `${home}/device`);
  await refused;
  await page.close();
}

await browser.close();
server.close();
console.log('Chromium: code, consent, device, sign-up, two-step sign-in, account, sign-out');
