// The documentation in Chromium: light, dark and phone, search, copying, and reading without a script.
import assert from "node:assert/strict";
import { accessible, openFixture, person, picture } from "./fixture.mjs";

const fixture = await openFixture();
const variants = [["light", {}], ["dark", { colorScheme: "dark" }], ["phone", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }]];
for (const [name, options] of variants) {
  const reader = await person(fixture, options);
  const { page } = reader;
  for (const path of ["", "start/up", "interface", "how-to/console", "api", "adr"]) {
    await page.goto(`${fixture.url}/docs/${path}`);
    await page.getByRole("searchbox").waitFor();
    await accessible(page, `${name}: /docs/${path}`);
    await picture(page, `docs-${name}-${path.replace("/", "-") || "index"}`);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(beyond, 0, `${name}: nothing of ${path} stands beyond the edge`);
  }
  await reader.leave();
}

// Search, by the keyboard alone.
const reader = await person(fixture, { permissions: ["clipboard-read", "clipboard-write"] });
const { page } = reader;
await page.goto(`${fixture.url}/docs/`);
await page.keyboard.press("/");
await page.keyboard.type("row level");
const results = page.locator("#results");
await results.getByRole("link").first().waitFor();
assert.match(await results.getByRole("status").textContent(), /^\d+ sections found$/);
assert.match(await results.getByRole("link").first().textContent(), /row level/i);
await accessible(page, "search results");
await picture(page, "docs-search");
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.waitForURL(/\/docs\/.+/);
await page.getByRole("heading", { name: /row level/i }).first().waitFor();
// What is written for the developers of Tidegate comes last.
await page.keyboard.press("/");
await page.keyboard.type("subscription");
await results.getByRole("link").nth(4).waitFor();
const first = await results.getByRole("link").evaluateAll((links) => links.slice(0, 5).map((link) => link.pathname));
assert.deepEqual(first.filter((path) => /\/(adr|spec-notes)/i.test(path)), []);
await page.keyboard.press("ControlOrMeta+A");
await page.keyboard.type("xyzzyplugh");
await results.getByText("Nothing found.").waitFor();
await page.keyboard.press("Escape");
assert.equal(await results.isVisible(), false);

// A block of code is copied as it is.
await page.goto(`${fixture.url}/docs/start/up`);
const block = page.locator(".code").first();
await block.getByRole("button", { name: "Copy" }).click();
await block.getByRole("button", { name: "Copied" }).waitFor();
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await block.locator("pre").textContent());

// From chapter to chapter, and to a section.
await page.getByRole("link", { name: /→$/ }).click();
await page.getByRole("link", { name: /^← One command/ }).click();
await page.getByRole("heading", { name: "One command for your own database" }).waitFor();
await page.goto(`${fixture.url}/docs/interface`);
await page.getByRole("navigation", { name: "On this page" }).getByRole("link", { name: "Errors", exact: true }).click();
await page.waitForURL(/#errors$/);
await reader.leave();

// Without a script: the chapter, the table of contents, and no search that does nothing.
const plain = await person(fixture, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
await plain.page.goto(`${fixture.url}/docs/start/up`);
await plain.page.getByRole("heading", { name: "One command for your own database" }).waitFor();
await plain.page.getByRole("navigation", { name: "Chapters" }).getByRole("link", { name: "The console", exact: true }).click();
await plain.page.getByRole("heading", { name: "The console", level: 1 }).waitFor();
assert.equal(await plain.page.locator("#search").isVisible(), false);
await plain.leave();

// A page that is not there leads on.
const lost = await person(fixture, {}, [/status of 404/]);
await lost.page.goto(`${fixture.url}/docs/start/nothing`);
await lost.page.getByRole("heading", { name: "There is no such page" }).waitFor();
await lost.page.getByRole("link", { name: "all chapters" }).click();
await lost.page.getByRole("heading", { name: "Documentation", level: 1 }).waitFor();
await lost.leave();
await fixture.end();
console.log("Chromium: the documentation is read, searched and copied from, light, dark, on a phone and without a script");
