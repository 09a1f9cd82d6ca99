// The example page of live rows in Chromium, opened as the file that it is.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const home = process.env.TIDEGATE_URL;
const file = new URL('../../../examples/live-rows.html', import.meta.url);

const post = async (path, body, token) => {
  const headers = { 'content-type': 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(home + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.json();
};
const token = (await post('/api/v4/oauth', {
  grant_type: 'password', username: 'demo', password: 'demo1234', client_id: 'demo-app',
})).access_token;
const insert = async (name) => {
  const q = 'insert into artists (name) values (:name) returning id';
  const answer = await post('/api/v4/sql', { q, params: { name } }, token);
  assert.equal(answer.data?.length, 1, JSON.stringify(answer));
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = await browser.newPage();
page.setDefaultTimeout(20_000);
page.on('pageerror', (error) => { throw error; });
await page.goto(`file://${fileURLToPath(file)}`);
const state = (text) => page.waitForFunction(
  (text) => document.getElementById('state').textContent.includes(text), text);
const names = () => page.locator('#rows tr td:nth-child(2)').allTextContents();

await page.getByLabel('Address').fill(`${home.replace('http', 'ws')}/api/v4/events`);
await page.getByLabel('Token').fill(token);
await page.getByRole('button', { name: 'Follow' }).click();
await state('live');
await insert('A <b>band</b>');
await page.locator('#rows tr').first().waitFor();
assert.deepEqual(await names(), ['"A <b>band</b>"'], 'a value is text');

// What is written while the connection is gone comes with the next one, and once.
await page.evaluate(() => socket.close());
await state('connecting again');
await insert('Second');
await page.locator('#rows tr').nth(1).waitFor();
await insert('Third');
await page.locator('#rows tr').nth(2).waitFor();
assert.deepEqual(await names(), ['"Third"', '"Second"', '"A <b>band</b>"']);

// What is wrong is said, and not tried again.
await page.getByLabel('Subscription').fill('subscription { NothingMessageAdded { id } }');
await page.getByRole('button', { name: 'Follow' }).click();
await state('NothingMessageAdded');
assert.deepEqual(await names(), []);

await browser.close();
console.log('Chromium: the page of live rows follows, goes on after a break, and says what is wrong');
