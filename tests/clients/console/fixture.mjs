// The fixture of every walk: the console of a demo, a browser that collects the errors of pages, and axe.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

import { passwordGrant, post } from "../demo.mjs";
import { serve } from "./server.mjs";

export const home = process.env.TIDEGATE_URL;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const owner = (await passwordGrant(home, "demo", "demo1234")).body.access_token;

/** Runs a statement as the owner, beside the page. */
export async function sql(q, params) {
  const answer = await post(`${home}/api/v4/sql`, { q, params }, owner);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data;
}

/**
 * A browser at the service, or with options at a proxy in front of it, which can break connections
 * and replace answers.
 */
export async function openFixture(options) {
  const server = options ? await serve(home, options) : { url: home, stop: () => undefined };
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  return {
    ...server,
    browser,
    end: async () => {
      await browser.close();
      server.stop();
    },
  };
}

/** A browser of its own, whose complaints are collected; `expected` are those that a walk provokes. */
export async function person({ browser, url }, options = {}, expected = []) {
  // Without transitions axe never sees a colour that is on its way to another.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30_000);
  const complaints = [];
  context.on("page", (page) => {
    page.on("console", (message) => {
      const text = message.text();
      if ((message.type() === "error" || /Content Security Policy/.test(text)) && !expected.some((part) => part.test(text))) complaints.push(text);
    });
    // The console behind a proxy is at another port than the service, which asks for consent there.
    page.on("domcontentloaded", () => {
      page.locator('button[name="decision"][value="allow"]').click({ timeout: 1_000 }).catch(() => undefined);
    });
    page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
  });
  const page = await context.newPage();
  return {
    context,
    page,
    url,
    leave: async () => {
      assert.deepEqual(complaints, [], "the page complains about nothing");
      await context.close();
    },
  };
}

/** Signs in through the pages of the service. */
export async function signIn({ page, url }, name = "demo", password = "demo1234") {
  await page.goto(`${url}/`);
  await page.getByLabel("Database").fill("demo");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("User name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.locator("form button[type=submit]").click();
  await page.getByRole("navigation", { name: "Tables" }).waitFor();
}

/** Opens a table from the list. */
export async function openTable(page, name) {
  await page.getByRole("navigation", { name: "Areas" }).getByRole("link", { name: "Tables" }).click();
  await page.getByRole("navigation", { name: "Tables" }).getByRole("link", { name: new RegExp(`^${name}\\b`) }).click();
  await page.getByRole("heading", { name: new RegExp(`${name}$`) }).waitFor();
  return page.getByRole("grid", { name: `Rows of ${name}` });
}

/** The feed says that it is live. */
export const live = (page) => page.locator(".feed .pill.live").waitFor();

/** A cell of the grid, by the row's number in the grid and the column's name. */
export async function cellOf(grid, row, column) {
  const header = grid.getByRole("columnheader").filter({ hasText: new RegExp(`^(◆ )?${column} `) });
  const index = await header.getAttribute("aria-colindex");
  return grid.locator(`[role=row][aria-rowindex="${row + 1}"] [role=gridcell][aria-colindex="${index}"]`);
}

/** No violation that axe knows of. */
export async function accessible(page, view) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`).join(" | ")}`);
  assert.deepEqual(found, [], `axe on ${view}`);
}

/** Takes a picture if CONSOLE_PICTURES is set. */
export async function picture(page, name) {
  if (process.env.CONSOLE_PICTURES) await page.screenshot({ path: `${process.env.CONSOLE_PICTURES}/${name}.png` });
}
