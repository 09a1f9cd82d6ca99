// The example page of live rows in Chromium, opened as the file that it is.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { passwordGrant, post } from '../demo.mjs';
import { open } from './chromium.mjs';

const home = process.env.TIDEGATE_URL;
const file = new URL('../../../examples/live-rows.html', import.meta.url);

const token = (await passwordGrant(home, 'demo', 'demo1234')).body.access_token;
const insert = async (name) => {
  const q = 'insert into artists (name) values (:name) returning id';
  const { body } = await post(`${home}/api/v4/sql`, { q, params: { name } }, token);
  assert.equal(body.data?.length, 1, JSON.stringify(body));
};

const { browser, page } = await open();
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
const again = state('connecting again');
await page.evaluate(() => socket.close());
await again;
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
