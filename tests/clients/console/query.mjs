// The Query area, task by task: SQL, a failing statement, a slow one, a plan, a chart, a method, GraphQL.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { accessible, openFixture, owner, person, picture, signIn, sql } from "./fixture.mjs";

const fixture = await openFixture();
const ada = await person(fixture, {}, [/status of 400/]);
const { page } = ada;
page.setDefaultTimeout(15_000);
await signIn(ada);
await page.getByRole("link", { name: "Query" }).click();

const editor = (name = "SQL statement") => page.getByRole("textbox", { name });
const write = async (text, name) => {
  await editor(name).click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
  await page.keyboard.press("Escape");
};
const press = (name) => page.getByRole("button", { name, exact: true }).click();
const result = page.getByRole("grid", { name: "Result" });
const said = (text) => page.locator(".outcome").getByText(text).first().waitFor();

// A first statement stands there and runs.
await editor().filter({ hasText: "select * from public.albums limit 100" }).waitFor();
await press("Run");
await said(/^100 rows/);

// Completion from the catalog.
await write("");
await page.keyboard.type("select * from artis");
await page.getByRole("listbox").getByText("artists", { exact: true }).waitFor();
await page.keyboard.press("Escape");

// A statement; digits are kept.
await write("select 12345678901234567890.10::numeric as n, 9007199254740993::int8 as big, null as nothing");
await page.keyboard.press("ControlOrMeta+Enter");
for (const text of ["12345678901234567890.10", "9007199254740993", "NULL"]) await result.getByText(text, { exact: true }).waitFor();
await accessible(page, "SQL");

// Parameters are offered when the statement names them.
await write("select name from artists where id = :id");
await page.getByLabel(":id").fill("2");
await press("Run");
const name = (await sql("select name from artists where id = 2"))[0].name;
await result.getByText(name, { exact: true }).waitFor();

// A failing statement: a sentence, the place is marked, the text stays.
await write("select title from albums where titel = 'x'");
await press("Run");
await page.getByRole("alert").filter({ hasText: /column "titel" does not exist/ }).waitFor();
await page.locator(".editor .cm-lintRange-error").waitFor();
assert.match(await editor().textContent(), /titel/);
await accessible(page, "failing statement");

// A slow one is cancelled, also in the database.
await write("select pg_sleep(60)");
await press("Run");
await page.getByText(/^Running for \d+ s$/).waitFor();
assert.equal(await page.locator(".outcome .problem").count(), 0, "the error of the statement before is gone");
await press("Cancel");
await said(/Cancelled/);
assert.equal(await page.locator(".outcome .problem").count(), 0, "a statement that was cancelled did not fail");
const sleeping = "select count(*)::int as n from pg_stat_activity where query ~ 'pg_sleep\\(60\\)' and state = 'active' and pid <> pg_backend_pid()";
for (let tries = 0; (await sql(sleeping))[0].n > 0; tries += 1) assert.ok(tries < 500, "the statement ends in the database");

// Several statements are one transaction; the rows are those of the last that gives any.
await write("create table scripted (id int, body text default 'a;b'); -- a;comment\ninsert into scripted (id) values (1), (:two);\nselect body || ';' || id as said from scripted order by id;\n");
await page.getByLabel(":two").fill("2");
await press("Run");
await said(/^3 statements in one transaction, 2 rows written, 2 rows/);
await result.getByText("a;b;2", { exact: true }).waitFor();
await accessible(page, "several statements");
// One that fails is named and marked, and none took effect.
await write("insert into scripted values (3);\nselect nothing from scripted");
await press("Run");
await page.getByRole("alert").filter({ hasText: /^Statement 2: column "nothing" does not exist. Nothing was changed/ }).waitFor();
await page.locator(".editor .cm-lintRange-error").filter({ hasText: /^nothing$/ }).waitFor();
assert.equal((await sql("select count(*)::int as n from scripted"))[0].n, 2);
// A plan is of one statement: the selected one.
await press("Explain");
await page.getByRole("alert").filter({ hasText: "This takes one statement. Select the one that you mean." }).waitFor();
await write("drop table scripted;\nselect 'selected' as it");
await editor().press("Shift+Home");
await press("Run selection");
await result.getByText("selected", { exact: true }).waitFor();
await press("Explain");
await page.locator(".plan-node").getByText("Result").waitFor();
// BEGIN and COMMIT around everything say what is true anyway; elsewhere a sentence says so.
await write("begin;\ninsert into scripted values (4);\nselect count(*) as kept from scripted;\ncommit;");
await press("Run");
await said(/^2 statements in one transaction, 1 row written, 1 row/);
await result.getByText("3", { exact: true }).waitFor();
await write("insert into scripted values (5);\nrollback;");
await press("Run");
await page.getByRole("alert").filter({ hasText: /^ROLLBACK is not needed here: what you run is one transaction/ }).waitFor();
await write("copy scripted to stdout");
await press("Run");
await page.getByRole("alert").filter({ hasText: /^COPY is not available here/ }).waitFor();
await write("-- nothing");
await press("Run");
await page.getByRole("alert").filter({ hasText: "There is no statement here to run." }).waitFor();
await sql("drop table scripted");
// Semicolons within strings, dollar quotes and parentheses end no statement.
for (const one of ["select ';' as a", "select $x$;$x$ as a", "do $$ begin perform 1; end $$", "select E'\\';' as a", 'select 1 as ";"', "/* ; */ select 1 as a;"]) {
  await write(one);
  await press("Run");
  await said(/^(1 row|0 rows|\d+ ms)/);
  assert.doesNotMatch(await page.locator(".outcome-head").textContent(), /statements/, one);
}

// A large answer is stopped when enough is seen.
await write("select g from generate_series(1, 3000000) g");
await press("Run");
await said(/The first 5,000 rows/);

// A plan.
await write("select a.title, r.name from albums a join artists r on r.id = a.artist_id where r.country = 'GB' order by 1");
await press("Explain");
await page.locator(".plan-node").getByText("albums").waitFor();
// Costs such as 1.80 arrive as exact numbers, and are added.
assert.doesNotMatch(await page.locator(".plan").textContent(), /NaN/);
await press("Run and measure");
await said(/^Run in/);
await accessible(page, "plan");
await picture(page, "plan");
// An estimate that is far off is pointed out, but not one of rows that a LIMIT left unread.
const farOff = page.locator(".plan-node").getByText(/estimate is far off/);
await write("select * from json_array_elements('[1]')");
await press("Run and measure");
await farOff.waitFor();
await write("select title from albums order by title limit 5");
await press("Run and measure");
await page.locator(".plan-node").getByText("Sort", { exact: true }).waitFor();
assert.equal(await farOff.count(), 0);
// The result of the run before is not taken for that of the one that runs.
await write("select pg_sleep(60)");
await press("Run");
await page.getByText(/^Running for \d+ s\. Below is the result of the run before\.$/).waitFor();
await accessible(page, "running above an old result");
await press("Cancel");
await said(/Cancelled/);

// A picture of numbers and of places.
await write("select date_trunc('month', now()) - g * interval '1 month' as month, 100 + (g * 37) % 60 as sold, g * g as back from generate_series(1, 24) g");
await press("Run");
await press("Chart");
await page.locator(".chart canvas").waitFor();
await accessible(page, "chart");
await picture(page, "chart");
await write("select country, count(*) as artists from artists group by 1 order by 2 desc");
await press("Run");
await press("Chart");
await page.locator(".chart .u-legend").getByText("country", { exact: true }).waitFor();
await accessible(page, "bars");
await picture(page, "bars");
await write("select 'Here' as name, point(2, 48) as at union all select 'There', point(10, 53)");
await press("Run");
await press("Map");
assert.equal(await page.locator("svg.map circle").count(), 2);
await page.locator("svg.map").getByText("Here", { exact: true }).last().waitFor();

// A table that was created is in the list at once.
await write("create table made_in_query (id int primary key)");
await press("Run");
await page.getByRole("link", { name: "Tables" }).click();
await page.getByRole("navigation", { name: "Tables" }).getByRole("link", { name: "made_in_query" }).waitFor();
await sql("drop table made_in_query");
await page.getByRole("link", { name: "Query", exact: true }).click();

// A method: saved, called, changed, deleted.
await write("select title from albums where artist_id = :artist order by id");
await press("Save as method");
await accessible(page, "save as method");
await page.getByRole("dialog").getByLabel("Name").fill("consoleAlbums");
await press("Save method");
await page.getByText("The method consoleAlbums was saved.").waitFor();
await page.getByRole("button", { name: "Call", exact: true }).waitFor();
await page.getByLabel(":artist").fill("2");
await press("Call");
const title = (await sql("select title from albums where artist_id = 2 order by id limit 1"))[0].title;
await result.getByText(title, { exact: true }).waitFor();
await accessible(page, "methods");
await write("select title, id from albums where artist_id = :artist order by id desc", "Statement of consoleAlbums");
await page.getByText(/^Call runs the method as it is saved/).waitFor();
await accessible(page, "a method that is not saved");
await press("Save changes");
await page.getByText("The method consoleAlbums was changed.").waitFor();
await page.getByText(/^Call runs the method as it is saved/).waitFor({ state: "detached" });
await press("Call");
await result.getByRole("columnheader", { name: "id" }).waitFor();
await press("Copy as");
// Each snippet runs, with a token, and prints the answer.
for (const [language, program, args] of [["TypeScript", process.execPath, ["--input-type=module", "-e"]], ["Python", "python3", ["-c"]], ["curl", "bash", ["-c"]]]) {
  await press(language);
  const snippet = (await page.getByLabel("Snippet").inputValue()).replace('"…"', JSON.stringify(owner));
  const { stdout } = await promisify(execFile)(program, [...args, snippet], { env: { ...process.env, TOKEN: owner } });
  assert.ok(stdout.includes(title), stdout);
}
await accessible(page, "copy as");
await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
await press("Delete");
await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
await page.getByText("The method consoleAlbums was deleted.").waitFor();

// GraphQL: a list as a table and as JSON, and an error.
await press("GraphQL");
await editor("GraphQL document").filter({ hasText: "(limit: 10)" }).waitFor();
await press("Run");
await said(/^10 rows/);
await write('{ getArtists(limit: 3, orderBy: {id: "asc"}) { id name country } }', "GraphQL document");
await press("Run");
await result.getByText((await sql("select name from artists order by id limit 1"))[0].name, { exact: true }).waitFor();
await press("JSON");
await page.locator(".json").getByText(/getArtists/).waitFor();
// On a phone a long answer leaves the editor its height.
await page.setViewportSize({ width: 390, height: 844 });
assert.ok((await page.locator(".editor").boundingBox()).height < 300);
await page.setViewportSize({ width: 1280, height: 800 });
await accessible(page, "GraphQL");
await picture(page, "graphql");
await write("{ getArtists { nothing } }", "GraphQL document");
await press("Run");
await page.getByRole("alert").filter({ hasText: /nothing/ }).waitFor();

// History, and going to a table and back: nothing typed is lost.
await page.getByRole("link", { name: "Tables" }).click();
await page.getByRole("link", { name: "Query", exact: true }).click();
await editor("GraphQL document").filter({ hasText: "nothing" }).waitFor();
await press("History");
await accessible(page, "history");
await page.getByRole("dialog").getByText("select pg_sleep(60)").click();
await editor().filter({ hasText: "pg_sleep" }).waitFor();
await press("History");
await press("Clear history");
await page.getByText("Nothing was run yet.").waitFor();
const kept = () => page.evaluate(() => Object.keys(localStorage).filter((key) => /draft|history/.test(key)).sort());
assert.deepEqual(await kept(), []);
await page.getByRole("dialog").getByRole("button", { name: "Close" }).first().click();

// Drafts and history are stored for one user; Sign out removes that user's and no others.
await write("select 'only for the owner'");
await press("Run");
await said(/^1 row/);
assert.deepEqual(await kept(), ["tidegate.console.draft.sql:demo", "tidegate.console.history:demo"]);
await page.evaluate(() => localStorage.setItem("tidegate.console.draft.sql:demo/alice", "select 'for alice'"));
await press("Sign out");
await page.waitForURL(/\/signout/);
assert.deepEqual(await kept(), ["tidegate.console.draft.sql:demo/alice"]);

await ada.leave();
await fixture.end();
console.log("Chromium: the console runs SQL, methods and GraphQL, explains, draws, cancels, and keeps what was typed");
