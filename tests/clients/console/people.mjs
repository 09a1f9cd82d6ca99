// The People area and View as, task by task: a user, a client, rights, columns, the audit log.
import assert from "node:assert/strict";
import { passwordGrant, post } from "../demo.mjs";
import { accessible, home, openFixture, openTable, owner, person, picture, signIn, sql } from "./fixture.mjs";

const fixture = await openFixture();
const ada = await person(fixture, {}, [/status of (400|403|404|409)/]);
const { page } = ada;
page.setDefaultTimeout(15_000);
await signIn(ada);
const part = (name) => page.getByRole("navigation", { name: "People" }).getByRole("link", { name }).click();
const press = (name) => page.getByRole("button", { name, exact: true }).click();
const dialog = page.getByRole("dialog");
await page.getByRole("link", { name: "People" }).click();

// A user: created, changed, refused with what was typed kept, deleted.
await page.getByRole("rowheader", { name: "alice" }).waitFor();
await accessible(page, "users");
await picture(page, "users");
await press("New user");
await dialog.locator("input[name=name]:focus").waitFor();
await accessible(page, "new user");
await dialog.getByLabel("Name").fill("alice");
await dialog.getByLabel("Password").fill("mara-12345");
await dialog.getByLabel("Email").fill("mara@example.com");
await press("Create user");
await dialog.getByRole("alert").waitFor();
assert.equal(await dialog.getByLabel("Email").inputValue(), "mara@example.com");
await dialog.getByLabel("Name").fill("mara");
await dialog.getByLabel(/^Groups/).fill("sales");
await press("Create user");
await page.getByText("The user mara was created.").waitFor();
assert.equal((await passwordGrant(home, "mara", "mara-12345")).status, 200);
await page.getByLabel("View as").locator("option", { hasText: "mara" }).waitFor({ state: "attached" });
await page.getByRole("button", { name: "Edit mara" }).click();
await dialog.getByLabel(/^Properties/).fill('{"desk": 7}');
await press("Save");
await page.getByText('{"desk":7}').waitFor();

// Kept out for a time; the owner cannot be.
for (const [disabled, status] of [[true, 400], [false, 200]]) {
  await page.getByRole("button", { name: "Edit mara" }).click();
  await dialog.locator("input[name=disabled]").setChecked(disabled);
  await press("Save");
  await page.getByRole("rowheader", { name: disabled ? "mara disabled" : "mara", exact: true }).waitFor();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await passwordGrant(home, "mara", "mara-12345")).status, status);
  await accessible(page, "a user who was disabled or enabled");
}
await page.getByRole("button", { name: "Edit demo" }).click();
await dialog.getByLabel("Email").waitFor();
assert.equal(await dialog.locator("input[name=disabled]").count(), 0);
await press("Cancel");

// Groups: with their users; a new one has the user beside the old.
await part("Groups");
await page.getByRole("row", { name: /^sales demo\/group\/sales mara/ }).waitFor();
await press("New group");
await accessible(page, "new group");
await dialog.getByLabel("Group", { exact: true }).fill("night");
await dialog.getByLabel(/^Its first users/).fill("nobody-of-this-name");
await press("Create group");
await dialog.getByRole("alert").filter({ hasText: "nobody-of-this-name" }).waitFor();
await dialog.getByLabel(/^Its first users/).fill("mara");
await press("Create group");
await page.getByRole("row", { name: /^night demo\/group\/night mara/ }).waitFor();
await page.getByRole("row", { name: /^sales demo\/group\/sales mara/ }).waitFor();
await dialog.waitFor({ state: "detached" });
await accessible(page, "groups");
await picture(page, "groups");

// The issuer of other tokens: added, changed, removed.
const issuer = async () => (await fetch(`${home}/api/v4/issuers/keycloak`, { headers: { Authorization: `Bearer ${owner}` } })).json();
await part("Issuers");
await page.getByText(/^No issuer yet/).waitFor();
await press("New issuer");
await accessible(page, "new issuer");
await dialog.getByLabel(/^Name/).fill("keycloak");
await dialog.getByLabel(/^Issuer, exactly/).fill("https://id.example.com/realms/shop");
await dialog.getByLabel(/^Audiences/).fill("shop-api\nshop-app");
await dialog.getByLabel(/^Claim that names groups/).fill("realm_access.roles[");
await press("Add issuer");
await dialog.getByRole("alert").filter({ hasText: "role_claim" }).waitFor();
await dialog.getByLabel(/^Claim that names groups/).fill("realm_access.roles");
await dialog.getByLabel(/^Group or user of tokens/).fill("customers");
await press("Add issuer");
await page.getByRole("row", { name: /^keycloak .*not recorded/ }).waitFor();
await dialog.waitFor({ state: "detached" });
await page.getByRole("button", { name: "Edit keycloak" }).click();
await dialog.locator("input[name=create_members]").check();
await dialog.getByLabel(/^Claims that policies read/).fill("org\nrealm_access.roles");
await press("Save");
await page.getByRole("row", { name: /^keycloak .*recorded as members/ }).waitFor();
await dialog.waitFor({ state: "detached" });
const { create_members: records, audience, claims, default_role: group } = await issuer();
assert.deepEqual({ records, audience, claims, group }, { records: true, audience: ["shop-api", "shop-app"], claims: ["org", "realm_access.roles"], group: "customers" });
await accessible(page, "issuers");
await picture(page, "issuers");
await page.getByRole("button", { name: "Remove keycloak" }).click();
await dialog.getByRole("button", { name: "Remove" }).click();
await page.getByText(/^No issuer yet/).waitFor();

// A client: its secret is shown once, and another one replaces it.
await part("Clients");
await page.getByRole("rowheader", { name: "demo-app" }).waitFor();
await accessible(page, "clients");
// On a phone the page is as wide as the screen, and the table scrolls within it.
await page.setViewportSize({ width: 390, height: 844 });
assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
await page.setViewportSize({ width: 1280, height: 800 });
await press("New client");
await accessible(page, "new client");
await dialog.getByLabel("Id").fill("till");
await dialog.getByLabel("Name").fill("Till");
await dialog.getByLabel(/^Addresses/).fill("https://till.example/");
await press("Create client");
const secret = dialog.getByLabel("Secret", { exact: true });
const first = await secret.textContent();
assert.ok(first.length >= 32, first);
await accessible(page, "secret");
await press("I have it");
await page.getByRole("button", { name: "New secret for till" }).click();
await secret.waitFor();
assert.notEqual(await secret.textContent(), first);
await press("I have it");
await page.getByRole("button", { name: "Delete till" }).click();
await dialog.getByRole("button", { name: "Delete" }).click();
await page.getByRole("rowheader", { name: "till" }).waitFor({ state: "detached" });

// Rights of a user, of a group, and of single columns.
const may = async (role, right, table = "notes") =>
  (await sql(`select has_table_privilege(:role, :table, '${right}') as may`, { role, table }))[0].may;
await part("Rights");
await page.getByLabel("mara on venues").waitFor();
assert.ok((await sql("select rolname from pg_roles where strpos(rolname::text, 'demo/$') = 1")).length > 0);
assert.equal(await page.getByRole("columnheader").filter({ hasText: "$" }).count(), 0, "internal roles are not shown");
await accessible(page, "rights");
await picture(page, "rights");
await page.getByLabel("mara on venues").selectOption("write");
await page.getByText("mara may now read and write venues.").waitFor();
assert.equal(await may("demo/mara", "UPDATE", "venues"), true);
await page.getByLabel("mara on venues").selectOption("none");
await page.getByText("mara now has no right on venues.").waitFor();
assert.equal(await may("demo/mara", "SELECT", "venues"), false);
await page.getByRole("button", { name: "Columns of venues for mara" }).click();
await dialog.getByLabel("SELECT id").check();
await accessible(page, "rights on columns");
await dialog.getByLabel("SELECT id").and(page.locator(":checked")).waitFor();
await press("Done");
const columns = async () => (await sql("select has_column_privilege('demo/mara', 'venues', 'id', 'SELECT') and not has_table_privilege('demo/mara', 'venues', 'SELECT') as only"))[0].only;
assert.equal(await columns(), true);
await page.getByLabel("sales on artists").selectOption("read");
await page.getByText("sales may now read artists.").waitFor();
assert.equal(await may("demo/group/sales", "SELECT", "artists"), true);
assert.equal(await may("demo/mara", "SELECT", "artists"), true);

// A group that may write may also use the sequence of a serial column.
await sql("create table if not exists counted (id serial primary key, name text)");
await page.reload();
const turn = async () => (await sql("select has_sequence_privilege('demo/group/sales', 'counted_id_seq', 'USAGE') as may"))[0].may;
await page.getByLabel("sales on counted").selectOption("write");
await page.getByText("sales may now read and write counted.").waitFor();
assert.equal(await turn(), true);
await page.getByLabel("sales on counted").selectOption("read");
await page.getByText("sales may now read counted.").waitFor();
assert.equal(await turn(), false);
await sql("drop table counted");

// Sessions: who is signed in, and ending one of them.
const mara = (await passwordGrant(home, "mara", "mara-12345")).body.access_token;
await part("Sessions");
await page.getByRole("rowheader", { name: "mara" }).first().waitFor();
await page.getByText("this one").waitFor();
await accessible(page, "sessions");
await picture(page, "sessions");
for (let left = await page.getByRole("button", { name: /^End the session of mara/ }).count(); left > 0; left -= 1) {
  await page.getByRole("button", { name: /^End the session of mara/ }).first().click();
  await dialog.getByRole("button", { name: "End session" }).click();
  await page.waitForFunction((expected) => document.querySelectorAll('button[aria-label^="End the session of mara"]').length === expected, left - 1);
}
assert.equal((await fetch(`${home}/api/v4/sessions`, { headers: { Authorization: `Bearer ${mara}` } })).status, 401);

// The audit log.
await part("Audit log");
await page.getByLabel("Find in the log").fill("mara");
await page.getByRole("rowheader", { name: "user created" }).first().waitFor();
await accessible(page, "audit log");

// View as: rows vanish by the policies, and one's own are back afterwards.
const grid = await openTable(page, "notes");
// Both see as many rows, so the owner of the rows tells them apart.
const rowOf = (owner) => grid.getByRole("gridcell", { name: owner, exact: true }).first();
await rowOf("demo").waitFor();
await page.getByLabel("View as").selectOption("alice");
await page.getByText(/^You see and do everything as alice/).waitFor();
await rowOf("demo/alice").waitFor();
assert.equal(await rowOf("demo").count(), 0, "alice does not see the owner's rows");
// Nor does the list say how many there are.
const own = (await page.getByText(/^\d+ rows$/).textContent()).split(" ")[0];
await page.getByRole("navigation", { name: "Tables" }).getByRole("link", { name: `notes ${own}`, exact: true }).waitFor();
await accessible(page, "View as");
await picture(page, "view-as");
assert.equal(await page.getByRole("link", { name: "People" }).count(), 0, "alice manages nobody");
await press("Be yourself again");
await rowOf("demo").waitFor();
assert.equal(await rowOf("demo/alice").count(), 0);

// From an area of the owner alone it leads to the tables.
await page.getByRole("link", { name: "Activity" }).click();
await page.getByLabel("View as").selectOption("alice");
await page.getByRole("region", { name: "All tables" }).getByRole("link", { name: "notes" }).waitFor();
await press("Be yourself again");

// A member has no SQL: as one, GraphQL answers. The switch has the first members, Users a button for each.
await page.getByRole("link", { name: "People" }).click();
await press("New user");
await dialog.getByLabel("Name").fill("kim");
await dialog.getByLabel(/^Groups/).fill("patrons");
await dialog.locator("input[name=member]").check();
await press("Create user");
await page.getByLabel("View as").locator("optgroup[label=Members] option", { hasText: "kim" }).waitFor({ state: "attached" });
await sql('grant select on artists to "demo/group/patrons"');
await page.getByRole("button", { name: "View as kim" }).click();
await page.getByText(/^You see and do everything as kim/).waitFor();
assert.equal(await page.getByLabel("View as").inputValue(), "kim");
assert.equal(await page.getByRole("button", { name: "SQL", exact: true }).count(), 0);
await page.getByRole("textbox", { name: "GraphQL document" }).filter({ hasText: "getArtists" }).waitFor();
await press("Run");
await page.locator(".outcome").getByText(/^10 rows/).waitFor();
await accessible(page, "View as a member");
await page.getByRole("link", { name: "Tables" }).click();
await page.getByRole("heading", { name: "kim is a member" }).waitFor();
await accessible(page, "tables of a member");
await press("Be yourself again");
await page.getByRole("region", { name: "All tables" }).waitFor();

// Of many users, those from a name on.
const many = Array.from({ length: 120 }, (_, at) => ({ name: `guest${String(at).padStart(3, "0")}`, kind: "member", user_group: "patrons" }));
assert.equal((await post(`${home}/api/v4/users`, many, owner)).status, 201);
await page.reload();
await page.getByRole("link", { name: "People" }).click();
await page.getByLabel("Names from").fill("mara");
await page.keyboard.press("Enter");
await page.getByRole("rowheader", { name: "alice" }).waitFor({ state: "detached" });
assert.match(await page.getByRole("rowheader").first().textContent(), /^mara/);
await accessible(page, "users from a name on");
await page.getByRole("button", { name: "First page" }).click();
await page.getByRole("rowheader", { name: "alice" }).waitFor();
await page.getByLabel("Names from").fill("mara");
await page.keyboard.press("Enter");

// The user goes.
await page.getByRole("link", { name: "People" }).click();
await page.getByRole("button", { name: "Delete mara" }).click();
await dialog.getByRole("button", { name: "Delete" }).click();
await page.getByText("The user mara was deleted.").waitFor();
for (const { name } of many) await fetch(`${home}/api/v4/users/${name}`, { method: "DELETE", headers: { Authorization: `Bearer ${owner}` } });

// The page of the account calls the console as the sign-in does.
await page.goto(`${home}/account`);
await page.getByRole("button", { name: "End the access of Tidegate", exact: true }).first().waitFor();

// A user without rights over others has no People area.
await ada.leave();
const alice = await person(fixture);
await signIn(alice, "alice", "alice1234");
assert.equal(await alice.page.getByRole("link", { name: "People" }).count(), 0);
await alice.leave();
await fixture.end();
console.log("Chromium: the console manages users, clients and rights, shows the audit log, and views as another user");
