// Passkeys in Chromium, each person with a virtual authenticator: added, used, renamed and removed
// on our pages, with a client and in the console. Then what a thief or another site could send.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { PATIENCE, launch } from './chromium.mjs';
import { oneTimeCode } from './code.mjs';
import { home, makeTenant, owner, serve, start, stop } from './site.mjs';

const { TIDEGATE_URL } = process.env;
await start();
const admin = await owner();
const application = await serve(await readFile('application.html'));
const app = `http://127.0.0.1:${application.port}`;
await admin('POST', '/api/v4/clients', {
  id: 'strict', name: 'Strict', redirect_uri: ['http://127.0.0.1:5173/callback'], public: true,
  two_factor: true,
});
const browser = await launch();

/** A person with a browser and an authenticator of its own, which verifies the person. */
async function person() {
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
  const ask = (method, more) => devtools.send(`WebAuthn.${method}`, { authenticatorId, ...more });
  const button = (name) => page.getByRole('button', { name, exact: true });
  return {
    context,
    page,
    button,
    shows: (text) => page.getByText(text).first().waitFor(),
    verifies: (isUserVerified) => ask('setUserVerified', { isUserVerified }),
    credentials: async () => (await ask('getCredentials')).credentials,
    replace: async (credential) => {
      await ask('clearCredentials');
      await ask('addCredential', { credential });
    },
    signIn: async (user, password, database = 'demo') => {
      await page.goto(`${home}/account`);
      await page.getByLabel('User name').fill(user);
      await page.getByLabel('Password').fill(password);
      await page.getByLabel('Database').fill(database);
      await button('Sign in').click();
    },
    add: async () => {
      await button('Add a passkey').click();
      await button('Create a passkey').click();
      await page.getByText('The passkey is added').waitFor();
    },
    byPasskey: () => button('Sign in with a passkey').click(),
    signOut: async () => {
      await page.goto(`${home}/account`);
      await button('Sign out').last().click();
      await page.getByText('You are signed out').waitFor();
    },
  };
}

/** The application's page sends the person to our pages. */
async function authorize({ page }, client) {
  await page.goto(app);
  await page.evaluate(([home, client]) => begin(home, client), [home, client]);
  await page.waitForURL(`${home}/**`);
}

const alice = await person();
const { page } = alice;

// A passkey is added after a sign-in with the password, if the authenticator verifies the person.
await alice.signIn('alice', 'alice1234');
await alice.button('Add a passkey').click();
await alice.verifies(false);
await alice.button('Create a passkey').click();
await alice.shows('The browser gave no passkey');
await alice.verifies(true);
await alice.button('Create a passkey').click();
await alice.shows('The passkey is added');
const [made, ...others] = await alice.credentials();
assert.deepEqual(others, []);
assert.equal(made.rpId, 'localhost');
assert.ok(made.isResidentCredential);
await alice.button('Add a passkey').click();
await alice.button('Create a passkey').click();
await alice.shows('The browser gave no passkey');
assert.equal((await alice.credentials()).length, 1);
await alice.signOut();

// It signs in without a name, only if the person is verified.
await page.goto(`${home}/account`);
await alice.verifies(false);
await alice.byPasskey();
await alice.shows('The browser gave no passkey');
await alice.verifies(true);
await alice.byPasskey();
await alice.shows('last used');
await page.locator('strong', { hasText: 'alice' }).first().waitFor();

// A person who has set up codes is asked for none: the passkey is both factors.
await alice.button('Set up').click();
await page.getByText('Cannot scan?').click();
const secret = (await page.locator('.secret').textContent()).replaceAll(' ', '');
await page.getByLabel('Code from the app').fill(oneTimeCode(secret));
await page.click('form button[type=submit]');
await page.locator('.codes code').nth(9).waitFor();
await alice.signOut();
await alice.signIn('alice', 'alice1234');
await page.getByLabel('Code').waitFor();
await alice.context.clearCookies();
await page.goto(`${home}/account`);
await alice.byPasskey();
await alice.shows('Your account');
await alice.signOut();

// With a client: code, consent, tokens; also one that demands a second factor.
await authorize(alice, 'demo-app');
await alice.byPasskey();
await alice.button('Allow').click();
await page.waitForURL(`${app}/**`);
await alice.shows('signed in as demo/alice');
await alice.signOut();
await authorize(alice, 'strict');
await alice.byPasskey();
await alice.shows('Allow access?');
await alice.signOut();

// In the console.
await page.goto(home);
await page.getByLabel('Database').fill('demo');
await alice.button('Sign in').click();
await page.waitForURL(`${home}/auth?**`);
await alice.byPasskey();
await page.getByRole('navigation', { name: 'Tables' }).waitFor();
await alice.signOut();

// A passkey of another tenant's user does not sign in with a client of this one.
await makeTenant('other', 'other1234');
const other = await person();
await other.signIn('other', 'other1234', 'other');
await other.add();
await other.signOut();
await authorize(other, 'demo-app');
await other.byPasskey();
await other.shows('This passkey does not work here');
await other.page.goto(`${home}/account`);
assert.ok(await other.button('Sign in').isVisible(), 'and no user is signed in');
await other.byPasskey();
await other.shows('Your account');

// A member, who has no role, has passkeys too; they end with the member.
const group = 'clients';
await admin('POST', '/api/v4/users', {
  name: 'kim', kind: 'member', user_group: group, password: 'kim-12345',
});
const kim = await person();
await kim.signIn('kim', 'kim-12345');
await kim.add();
await kim.signOut();
await kim.page.goto(`${home}/account`);
await kim.byPasskey();
await kim.shows('last used');
await admin('PATCH', '/api/v4/users/kim', { kind: 'role', user_group: group });
await kim.page.goto(`${home}/account`);
await kim.byPasskey();
await kim.shows('Your account');
await admin('DELETE', '/api/v4/users/kim');
await admin('POST', '/api/v4/users', {
  name: 'kim', kind: 'member', user_group: group, password: 'kim-54321',
});
await kim.page.goto(`${home}/account`);
await kim.byPasskey();
await kim.shows('This passkey does not work here');

// Requests that are made by hand, with answers of the authenticator.

/** The sign-in page of a new browser, with its question. */
async function question() {
  const answer = await fetch(`${home}/account`);
  const text = await answer.text();
  const plain = (html) => html.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  const form = text.slice(text.indexOf('value="passkey"'));
  const of = (mark) => plain(new RegExp(`${mark}="([^"]*)"`).exec(form)[1]);
  return {
    cookie: answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0]).join('; '),
    form_token: plain(/name="form_token" value="([^"]*)"/.exec(text)[1]),
    sealed: of('name="sealed" value'),
    options: JSON.parse(of('data-options')),
  };
}

/** The answer of the page's authenticator to a question. */
const sign = ({ page }, { options }) => page.evaluate(async (options) => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  return JSON.stringify(credential.toJSON());
}, options);

const send = ({ cookie, form_token, sealed }, credential) => fetch(`${home}/account`, {
  method: 'POST',
  redirect: 'manual',
  headers: { cookie, origin: home },
  body: new URLSearchParams({ form_token, step: 'passkey', sealed, credential }),
});

async function refused(asked, credential) {
  const answer = await send(asked, credential);
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /This passkey does not work here/);
  assert.deepEqual(answer.headers.getSetCookie().filter((it) => it.startsWith(asked.cookie)), []);
}

await page.goto(`${home}/account`);
const first = await question();
const answered = await sign(alice, first);
const [counted] = await alice.credentials();
assert.equal((await send(first, answered)).status, 303);
// The same again; another question with that answer; the question of another browser.
await refused(first, answered);
const second = await question();
await refused(second, answered);
const third = await question();
await refused({ ...third, sealed: second.sealed }, await sign(alice, second));

// Another site on the same host, which the authenticator cannot tell apart.
const site = await serve('<title>Another site</title>');
await page.goto(`http://localhost:${site.port}`);
await refused(third, await sign(alice, third));
await page.goto(`${home}/account`);

// A copy of the authenticator, whose counter is behind. What the owner sees of it.
await alice.replace({ ...counted, signCount: counted.signCount - 1 });
const fourth = await question();
await refused(fourth, await sign(alice, fourth));
const { events } = await admin('GET', '/api/v4/audit?limit=1000');
const failed = ({ event, detail, user }) =>
  event === 'sign_in_failed' && detail === 'passkey, perhaps a copy' && user === 'alice';
assert.ok(events.some(failed), 'the audit log has it');
await alice.replace({ ...counted, signCount: counted.signCount + 10 });

// A removed passkey is refused.
await page.goto(`${home}/account`);
await alice.byPasskey();
await page.getByText('Another name').click();
await page.getByLabel('New name of the passkey Chrome on Linux').fill('Key ring');
await alice.button('Rename').click();
await alice.shows('The passkey has its new name');
await alice.button('Remove the passkey Key ring').click();
await alice.shows('The passkey is removed');
await alice.signOut();
await page.goto(`${home}/account`);
await alice.byPasskey();
await alice.shows('This passkey does not work here');

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
await stop();
console.log('passkeys: added, used as both factors by users, members, clients and the console; refused where they must be; renamed and removed');
process.exit(0);
