// People in front of the applications of docs/how-to: react.md, nextjs.md, authjs.md.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const [, , application, address] = process.argv;
const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox", "--disable-gpu"] });

async function signIn() {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(90_000);
  page.on("pageerror", (error) => { throw error; });
  await page.goto(address);
  if (application !== "next") await page.click("text=Sign in");
  await page.fill("[name=username]", "alice");
  await page.fill("[name=password]", "alice1234");
  await page.press("[name=password]", "Enter");
  // The consent of a person to a confidential client is asked for once.
  const allow = page.locator("[name=decision][value=allow]");
  await allow.or(page.locator("main input[aria-label]")).first().waitFor();
  if (await allow.isVisible()) await allow.click();
  await page.waitForURL(address);
  return page;
}

try {
  const [one, two] = [await signIn(), await signIn()];
  const name = `From ${application}`;
  await one.fill("main input[aria-label]", name);
  await one.click("text=Add");
  await one.getByText(name).waitFor();
  if (application !== "react") await two.reload();
  await two.getByText(name).waitFor();
} catch (error) {
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    console.error(page.url(), await page.locator("body").innerText().catch(() => ""));
  }
  throw error;
} finally {
  await browser.close();
}
