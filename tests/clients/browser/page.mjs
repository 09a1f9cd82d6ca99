// Our own GraphQL page in Chromium, and server-sent events in the same page: a browser asks for
// compressed answers, so that what comes must come all the same.
import assert from 'node:assert/strict';
import { EventEmitter, on } from 'node:events';
import { passwordGrant, post } from '../demo.mjs';
import { PATIENCE, open } from './chromium.mjs';

const home = process.env.TIDEGATE_URL;
const owner = (await passwordGrant(home, 'demo', 'demo1234')).body.access_token;
const sql = async (q) => {
  const answer = await post(`${home}/api/v4/sql`, { q }, owner);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
};
await sql('create table page_numbers (id int8 primary key, n numeric, j jsonb)');
// A definition is known within a second.
const schema = `${home}/api/graphql/schema/public`;
const knows = async () => (await post(schema, { query: '{ getPageNumbers { id } }' }, owner)).status === 200;
while (!await knows());

const { browser, page } = await open();
// Each reading of the schema waits until it is let go.
const reads = (request) => request.postData()?.includes('__schema');
const routes = new EventEmitter();
const held = on(routes, 'held', { signal: AbortSignal.timeout(3 * PATIENCE) });
await page.route(schema, (route) => reads(route.request()) ? routes.emit('held', route) : route.continue());
const next = async () => (await held.next()).value[0];
const go = async (route) => {
  const answer = page.waitForResponse((answer) => reads(answer.request()));
  await route.continue();
  await (await answer).finished();
};
const query = page.getByLabel('Query');
const told = (text) => page.waitForFunction((text) => document.getElementById('docs').textContent.includes(text), text);
await page.goto(schema);
await page.locator('#token').fill(owner);
// The schema is read again when the token loses the focus. The editor has the focus when it arrives, so the text of the editor stays.
await query.focus();
const [anybodys, owners] = [await next(), await next()];
await go(owners);
await told('PageNumbers');
// A schema that was requested earlier but arrives later is that of another caller.
await go(anybodys);
await told('PageNumbers');
assert.equal(await query.inputValue(), '');
// Who is elsewhere when it comes gets a first query.
await page.getByLabel('Variables').focus();
await page.locator('#token').dispatchEvent('change');
await go(await next());
await page.waitForFunction(() => document.getElementById('query').value);
assert.match(await query.inputValue(), /^# Ctrl\+Enter runs.*\n\{\n  get\w+\(limit: 10\) \{/);
await page.unroute(schema);
const status = async (text) => {
  // An ellipsis stands there while it runs.
  const done = () => document.getElementById('status').textContent.replace('…', '');
  const shown = await page.waitForFunction(done);
  assert.match(await shown.jsonValue(), text);
};

// Numbers stay as they were written and stored, and lists and objects get lines of their own.
await query.fill('mutation ($n: String, $j: JSON) { insertPageNumbers(data: {id: 1, n: $n, j: $j}) { n j } }');
await page.getByLabel('Variables').fill('{"n": "12345678901234567890.10", "j": {"big": 12345678901234567890, "exact": 1.10, "text": "a\\\\, {[", "none": [], "empty": {}}}');
await page.locator('#run').click();
await status(/^200/);
const shown = await page.locator('#response').textContent();
for (const part of ['12345678901234567890.10', '"big": 12345678901234567890', '"exact": 1.10', '"text": "a\\\\, {["', '"none": []', '"empty": {}']) {
  assert.ok(shown.includes(part), `${part} in\n${shown}`);
}
assert.ok(shown.startsWith('{\n  "data": {\n    "insertPageNumbers": [\n      {\n        "n": '), shown);
JSON.parse(shown);
await page.getByLabel('Variables').fill('{"n": ');
await page.locator('#run').click();
await status(/^The variables are no JSON/);

// Events, as a page without a library gets them.
const address = `/api/v4/events/stream?schema=public&token=${owner}&query=${encodeURIComponent('subscription { PageNumbersMessageAdded { id } }')}`;
await page.evaluate((address) => {
  const source = new EventSource(address);
  window.heard = [];
  for (const kind of ['message', 'subscribe_ack']) {
    source.addEventListener(kind, (event) => window.heard.push([kind, event.data]));
  }
}, address);
const heard = (kind) => page.waitForFunction(
  (kind) => window.heard.find(([heard]) => heard === kind)?.[1], kind);
await heard('subscribe_ack');
await sql('insert into page_numbers (id) values (9007199254740993)');
const event = await (await heard('message')).jsonValue();
assert.deepEqual(JSON.parse(event).data, { PageNumbersMessageAdded: [{ id: '9007199254740993' }] });

await browser.close();
console.log('Chromium: our page keeps every digit, and events come to an EventSource');
