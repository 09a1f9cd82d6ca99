// The Tables area, task by task: sign in, look, filter, edit and see the event, insert, delete, follow.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { accessible, cellOf, live, openFixture, openTable, person, picture, signIn, sql } from "./fixture.mjs";

// PostgreSQL has no estimate of its rows yet, so the console counts them.
await sql("create table if not exists never_analyzed (id int primary key)");
await sql("insert into never_analyzed values (1), (2), (3) on conflict do nothing");

await sql("drop table if exists empty_table");
await sql("create table empty_table (id int generated always as identity primary key)");

const fixture = await openFixture();
const ada = await person(fixture, {}, [/status of 400/]);
const { page } = ada;
await page.goto(`${fixture.url}/?client_id=console`);
await accessible(page, "sign-in");
await picture(page, "sign-in");
await signIn(ada);
// At first sight: all tables, and where an application reaches them.
await page.getByRole("region", { name: "All tables" }).getByRole("link", { name: "albums" }).waitFor();
await page.getByText(`${fixture.url}/api/graphql/schema/public`).waitFor();
await page.getByRole("row", { name: /^never_analyzed table 3\b/ }).waitFor();
await sql("drop table never_analyzed");
// Who comes back to the page sees what others did.
await page.evaluate(() => dispatchEvent(new Event("focus")));
await page.getByRole("row", { name: /^never_analyzed/ }).waitFor({ state: "detached" });
await accessible(page, "list of tables");

// Nothing stands beyond the edge of a narrow window.
await page.setViewportSize({ width: 730, height: 600 });
assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 730);
await page.setViewportSize({ width: 1280, height: 800 });

// A table, and a filter.
let grid = await openTable(page, "albums");
await live(page);
await (await cellOf(grid, 1, "title")).filter({ hasText: /\w/ }).waitFor();
await accessible(page, "rows");
await picture(page, "rows");
await page.getByRole("button", { name: "Filter", exact: true }).click();
await page.getByLabel("Column", { exact: true }).selectOption("title");
await page.getByLabel("Comparison").selectOption("contains");
await page.getByLabel("Value").fill("kingdom");
await page.getByRole("button", { name: "Apply" }).click();
const found = (await sql("select count(*)::int as n from albums where title ilike '%kingdom%'"))[0].n;
await page.getByText(`${found} rows`, { exact: true }).waitFor();
await accessible(page, "filter");
await page.getByLabel("Value").fill("no title has this");
await page.getByRole("button", { name: "Apply" }).click();
await page.getByText("No row matches the filter.").waitFor();
await accessible(page, "no row");
// A value that is none of the column's type: the error alone, and nothing is still being counted.
await page.getByLabel("Column", { exact: true }).selectOption("id");
await page.getByLabel("Comparison").selectOption("equals");
await page.getByLabel("Value").fill("no number");
await page.getByRole("button", { name: "Apply" }).click();
await page.getByRole("alert").filter({ hasText: /invalid input syntax for type integer/ }).waitFor();
await page.getByText("Counting…").waitFor({ state: "detached" });
await page.getByRole("button", { name: "Clear" }).click();

// A cell, and its event.
const before = (await sql("select title from albums where id = 1"))[0].title;
const title = await cellOf(grid, 1, "title");
await title.dblclick();
await grid.getByLabel("title").fill("Edited in the console");
await page.keyboard.press("Enter");
const update = page.locator(".event.update").filter({ hasText: "Edited in the console" });
await update.waitFor();
assert.match(await update.locator(".latency").textContent(), /^\d+ ms after you saved$/);
await update.locator("del").getByText(before, { exact: true }).waitFor();
await update.locator("ins").getByText("Edited in the console", { exact: true }).waitFor();
assert.equal((await sql("select title from albums where id = 1"))[0].title, "Edited in the console");
await picture(page, "live");
await accessible(page, "live change");

// A change of another user appears in the grid.
await sql("update albums set title = :t where id = 1", { t: before });
await title.filter({ hasText: before }).waitFor();
const theirs = page.locator(".event.update").first();
await theirs.locator("del").getByText("Edited in the console", { exact: true }).waitFor();
await theirs.locator("ins").getByText(before, { exact: true }).waitFor();

// Two people edit one value: the second is asked.
await title.dblclick();
await sql("update albums set title = 'Theirs' where id = 1");
await grid.getByLabel("title").fill("Mine");
await page.keyboard.press("Enter");
const conflict = page.getByRole("dialog", { name: /changed by somebody else/ });
await conflict.getByText("Theirs", { exact: true }).waitFor();
const foreign = page.locator(".event.update").filter({ hasText: "Theirs" });
await foreign.waitFor();
assert.equal(await foreign.locator(".latency").count(), 0, "the event of somebody else is not ours");
await accessible(page, "conflict");
await conflict.getByRole("button", { name: "Write mine" }).click();
await title.filter({ hasText: "Mine" }).waitFor();
assert.equal((await sql("select title from albums where id = 1"))[0].title, "Mine");
await sql("update albums set title = :t where id = 1", { t: before });

// A value that the database refuses: a sentence, and the old value stays.
await title.filter({ hasText: before }).waitFor();
await (await cellOf(grid, 1, "released")).dblclick();
await grid.getByLabel("released").fill("not a day");
await page.keyboard.press("Enter");
await page.getByText(/invalid input syntax for type date/).waitFor();
await page.getByRole("button", { name: "Dismiss" }).click();

// Insert, delete.
grid = await openTable(page, "playlists");
await live(page);
await page.getByRole("button", { name: "New row" }).click();
await accessible(page, "new row");
await page.getByLabel("name", { exact: true }).fill("Made in the console");
await page.getByRole("button", { name: "Insert", exact: true }).click();
const insert = page.locator(".event.insert").filter({ hasText: "Made in the console" });
await insert.waitFor();
assert.match(await insert.locator(".latency").textContent(), /^\d+ ms/);
const cell = grid.getByRole("gridcell").filter({ hasText: "Made in the console" });
await cell.click();
await page.getByRole("button", { name: "Delete row" }).click();
await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
await page.locator(".event.delete").waitFor();
await cell.waitFor({ state: "detached" });
assert.equal((await sql("select count(*)::int as n from playlists where name = 'Made in the console'"))[0].n, 0);

// A table without rows says so, until it has one.
grid = await openTable(page, "empty_table");
await live(page);
await page.getByText("This table has no rows yet: New row or Import CSV adds some.").waitFor();
await accessible(page, "table without rows");
await sql("insert into empty_table default values");
await page.getByText("This table has no rows yet").waitFor({ state: "detached" });
await page.getByText("1 row", { exact: true }).waitFor();
grid = await openTable(page, "playlists");

// CSV out, and in again: a wrong file says what is wrong, a right one is inserted.
const download = page.waitForEvent("download");
await page.getByRole("button", { name: "Export CSV" }).click();
const csv = await readFile(await (await download).path(), "utf8");
assert.match(csv, /^id,/);
assert.equal(csv.trim().split("\r\n").length, 1 + (await sql("select count(*)::int as n from playlists"))[0].n);
await page.getByRole("button", { name: "Import CSV" }).click();
await accessible(page, "import");
const choose = (text) => page.getByLabel("CSV file").setInputFiles({ name: "rows.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
await choose("nothing\n1\n");
await page.getByRole("alert").filter({ hasText: "The table has no column nothing" }).waitFor();
await choose('name\n"First, with ""quotes"" from CSV"\nSecond from CSV\n');
await page.getByText("2 rows, columns name.").waitFor();
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByText("2 rows were imported.").waitFor();
await grid.getByRole("gridcell").filter({ hasText: 'First, with "quotes" from CSV' }).waitFor();
// As a spreadsheet writes it where the comma is for decimals.
await page.getByRole("button", { name: "Import CSV" }).click();
await choose("\uFEFFid;name\r\n900001;Third, from CSV\r\n");
await page.getByText("1 row, columns id, name.").waitFor();
await page.getByRole("button", { name: "Import", exact: true }).click();
await grid.getByRole("gridcell", { name: "Third, from CSV", exact: true }).waitFor();
// A long import is stopped, and says what it has imported.
await page.getByRole("button", { name: "Import CSV" }).click();
await choose(`name\n${"Many from CSV\n".repeat(100_000)}`);
await page.getByText("100,000 rows, columns name.").waitFor();
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByRole("progressbar", { name: "Imported rows" }).waitFor();
await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
const stopped = await page.getByRole("alert").filter({ hasText: /^Cancelled\. (The first|Nothing)/ }).textContent();
const imported = Number(/The first ([\d,]+) rows/.exec(stopped)?.[1].replaceAll(",", "") ?? 0);
assert.equal((await sql("select count(*)::int as n from playlists where name = 'Many from CSV'"))[0].n, imported);
await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
await sql("delete from playlists where name like '%from CSV'");

// A value is copied.
await ada.context.grantPermissions(["clipboard-read", "clipboard-write"]);
await grid.getByRole("gridcell").nth(1).click();
const copied = await grid.getByRole("gridcell").nth(1).textContent();
await page.keyboard.press("ControlOrMeta+C");
await page.getByText("Copied.").waitFor();
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), copied);

// By the keyboard alone: to a cell, edit, leave, order, and along a foreign key.
grid = await openTable(page, "albums");
await (await cellOf(grid, 1, "title")).filter({ hasText: /\w/ }).waitFor();
await grid.focus();
for (const key of ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "F2"]) await page.keyboard.press(key);
await grid.getByLabel("title").waitFor();
await page.keyboard.press("Escape");
// The grid has the focus again when the editor is gone.
await page.locator('[role="grid"]:focus').waitFor();
await page.keyboard.press("ArrowLeft");
await page.keyboard.press("Control+Enter");
await page.getByRole("grid", { name: "Rows of artists" }).waitFor();

// A foreign key opens the row that it points to.
grid = await openTable(page, "albums");
await (await cellOf(grid, 1, "artist_id")).getByRole("button").click();
grid = page.getByRole("grid", { name: "Rows of artists" });
await page.getByText("1 row", { exact: true }).waitFor();
const artist = (await sql("select r.name from albums a join artists r on r.id = a.artist_id order by a.id limit 1"))[0].name;
await (await cellOf(grid, 1, "name")).filter({ hasText: artist }).waitFor();

// Structure, indexes, policies.
for (const [part, text] of [["Structure", "Constraints"], ["Indexes", "artists_pkey"], ["Policies", "Row level security"]]) {
  await page.getByRole("button", { name: part }).click();
  await page.locator(".sheet").getByText(text).first().waitFor();
  await accessible(page, part);
}

// The way to a first policy.
assert.equal(await page.getByText(/belongs to the role/).count(), 0, "it is the owner's");
await page.getByRole("button", { name: "Write a policy" }).click();
await page.getByRole("textbox", { name: "SQL statement" }).filter({ hasText: "alter table public.artists enable row level security" }).waitFor();
assert.equal(await page.title(), "Query · demo · Tidegate");
await page.getByRole("link", { name: "Tables" }).click();

// A link with filters that the console does not write shows the table without filters.
const sent = [];
page.on("request", (asked) => sent.push(asked.postData() ?? ""));
const albums = (await sql("select count(*)::int as n from albums"))[0].n;
const open = async (hash) => {
  await page.evaluate((to) => (location.hash = to), "#/tables");
  await page.getByRole("grid").waitFor({ state: "detached" });
  await page.evaluate((to) => (location.hash = to), hash);
};
const injected = '= 1 or true or "id" =';
const good = { column: "id", operator: "=", value: "1" };
for (const filters of [
  [{ ...good, operator: injected }], [good, { ...good, operator: injected }], [{ ...good, operator: "constructor" }],
  [{ ...good, value: 1 }], [{ ...good, column: null }], [null], ["id"], {}, null, 7, "no JSON",
]) {
  const text = filters === "no JSON" ? "[" : JSON.stringify(filters);
  await open(`#/tables/public/albums?${new URLSearchParams({ filters: text })}`);
  await page.getByText(`${albums} rows`, { exact: true }).waitFor();
  await page.getByRole("button", { name: "Filter", exact: true }).waitFor();
}
assert.ok(sent.some((body) => body.includes("albums")));
assert.deepEqual(sent.filter((body) => body.includes("or true")), []);
await open(`#/tables/public/albums?${new URLSearchParams({ filters: JSON.stringify([good]) })}`);
await page.getByText("1 row", { exact: true }).waitFor();

// Malformed percent-encoding, while the page is open and when it loads.
await open("#/tables/public/%E0%A4");
await page.getByText("There is no table public.%E0%A4 that you may see.").waitFor();
await page.reload();
await page.getByText("There is no table public.%E0%A4 that you may see.").waitFor();
await openTable(page, "albums");

await ada.leave();

// A change between the reading of the rows and the start of the subscription is shown.
await sql("create table late_start (id int primary key, name text)");
await sql("insert into late_start values (1, 'as it was')");
const ben = await person(fixture);
const held = [];
let holds = true;
await ben.page.routeWebSocket(/\/api\/v4\/events/, (socket) => {
  const service = socket.connectToServer();
  socket.onMessage((message) => {
    if (holds && String(message).includes('"subscription"')) held.push(() => service.send(message));
    else service.send(message);
  });
});
await signIn(ben);
grid = await openTable(ben.page, "late_start");
await (await cellOf(grid, 1, "name")).filter({ hasText: "as it was" }).waitFor();
await sql("update late_start set name = 'as it is'");
holds = false;
for (const release of held) release();
await (await cellOf(grid, 1, "name")).filter({ hasText: "as it is" }).waitFor();
await sql("drop table late_start");
await ben.leave();
await fixture.end();
console.log("Chromium: the console signs in, filters, edits, inserts, deletes, follows, and sees each change live");
