// The Activity area, task by task: counts, failed, refused and slow statements, the feed, a server that is away.
import assert from "node:assert/strict";
import { passwordGrant, post } from "../demo.mjs";
import { accessible, home, live, openFixture, openTable, person, picture, signIn, sql } from "./fixture.mjs";

const alice = (await passwordGrant(home, "alice", "alice1234")).body.access_token;
const asAlice = (q) => post(`${home}/api/v4/sql`, { q }, alice);

let away = false;
const intercept = async (asked, answer) => {
  if (!away || asked.url !== "/api/v4/activity") return false;
  answer.destroy();
  return true;
};
const fixture = await openFixture({ intercept });
const ada = await person(fixture, {}, [/net::ERR/]);
const { page } = ada;
page.setDefaultTimeout(15_000);
let asked = 0;
page.on("request", (request) => {
  if (request.url().endsWith("/api/v4/activity")) asked += 1;
});
// The clock can be moved on, which shows that a paused page asks nothing.
await page.clock.install();
await signIn(ada);

// By the keyboard: to the area.
await page.getByRole("navigation", { name: "Areas" }).getByRole("link", { name: "Activity" }).focus();
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: /^Activity/ }).waitFor();
await page.getByText("No statement was slow or failed since the server was started.").waitFor();
await page.locator(".rates .chart canvas").waitFor();
await accessible(page, "activity without events");

const tile = async (name) =>
  Number((await page.locator(".tiles > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").first().textContent()).replaceAll(",", ""));
const atLeast = (name, count) => page.waitForFunction(([name, count]) =>
  [...document.querySelectorAll(".tiles > div")].some((part) =>
    part.querySelector("dt").textContent === name && Number(part.querySelector("dd").textContent.replaceAll(",", "")) >= count), [name, count]);
const row = (text) => page.locator(".statements tbody tr").filter({ hasText: text });

// Requests are counted while one looks, and looking does not count.
const before = await tile("Requests");
await Promise.all(Array.from({ length: 20 }, () => sql("select 1")));
await atLeast("Requests", before + 20);
// The last of them may be counted after the page has asked.
let quiet;
for (let round = 0; round < 5 && quiet !== await tile("Requests"); round += 1) {
  quiet = await tile("Requests");
  const seen = asked;
  while (asked < seen + 3) await page.waitForRequest(/activity$/);
}
assert.equal(await tile("Requests"), quiet, "looking does not count");

// Failed statements of one kind are one row, without values.
for (const word of ["first secret", "second secret", "third secret"]) {
  assert.equal((await asAlice(`select titel from albums where title = '${word}'`)).status, 400);
}
const failed = row("select titel from albums where title = ?");
await failed.getByText("failed", { exact: true }).waitFor();
await failed.getByText("× 3").waitFor();
await failed.getByText("SQL_ERROR 42703").waitFor();
await failed.getByText("alice", { exact: true }).waitFor();
assert.ok(!(await page.content()).includes("secret"), "no value is shown");
await atLeast("Errors", 3);

// A refused one, and a slow one.
assert.equal((await asAlice("copy albums from 'a file'")).status, 403);
await row("copy albums from ?").getByText("refused", { exact: true }).waitFor();
assert.equal((await asAlice("select pg_sleep(1.1)")).status, 200);
await row("pg_sleep").getByText("slow", { exact: true }).waitFor();
assert.match(await row("pg_sleep").textContent(), /1\.\d s/);
await accessible(page, "activity");

// Only some of them, and none.
await page.getByRole("button", { name: /^Slow \d+$/ }).click();
assert.equal(await row("copy").count(), 0);
await row("pg_sleep").waitFor();
await page.getByRole("button", { name: /^All \d+$/ }).click();
await page.getByLabel("Find a statement").fill("no such text");
await page.getByText("No statement matches.").waitFor();
await page.getByLabel("Find a statement").fill("COPY");
await row("copy albums").waitFor();
assert.equal(await row("pg_sleep").count(), 0);
await page.getByLabel("Find a statement").fill("");

// Subscriptions and the lag, while a user views a table.
const fact = (name) => page.locator(".facts > div").filter({ hasText: name }).locator("dd");
const bob = await person(fixture);
await signIn(bob);
await openTable(bob.page, "albums");
await live(bob.page);
await fact("Subscriptions").filter({ hasText: "1" }).waitFor();
assert.match(await fact("Lag behind the database").textContent(), /^\d+(\.\d)? s, \d/);
await page.getByText("running", { exact: true }).waitFor();
await accessible(page, "activity with a subscriber");
await picture(page, "activity");
await bob.leave();
await fact("Subscriptions").filter({ hasText: "0" }).waitFor();

// The server is away: a sentence, the last numbers stay, and it goes on by itself.
away = true;
await page.getByRole("alert").filter({ hasText: /cannot be reached.*The numbers below are the last/ }).waitFor();
await row("pg_sleep").waitFor();
await accessible(page, "activity of a server that is away");
away = false;
await page.locator(".sheet-head .pill.live").waitFor();
assert.equal(await page.getByRole("alert").count(), 0);

// Paused: nothing is asked, and what happens meanwhile is shown afterwards.
await page.getByRole("button", { name: "Pause" }).click();
await page.getByText("paused", { exact: true }).waitFor();
await asAlice("select nowhere from artists");
const paused = asked;
await page.clock.runFor(20_000);
assert.equal(asked, paused, "a paused page asks nothing");
assert.equal(await row("nowhere").count(), 0);
await page.getByRole("button", { name: "Resume" }).click();
await row("select nowhere from artists").waitFor();

// Leaving the area ends the reading.
await page.getByRole("link", { name: "Query" }).click();
await page.getByRole("textbox", { name: "SQL statement" }).waitFor();
const left = asked;
await page.clock.runFor(20_000);
assert.equal(asked, left, "another area asks nothing");
await ada.leave();

// Other users have no such area.
const eve = await person(fixture);
await signIn(eve, "alice", "alice1234");
assert.equal(await eve.page.getByRole("link", { name: "Activity" }).count(), 0);
await eve.page.evaluate(() => (location.hash = "#/activity"));
await eve.page.getByText("What happens in the database is shown to its owner.").waitFor();
await eve.leave();
await fixture.end();
console.log("Chromium: the console shows requests, errors, slow and refused statements, subscriptions and the lag");
