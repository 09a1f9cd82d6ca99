// Two windows of docs/tutorials/todo.md: what one does, the other shows.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const browser = await chromium.launch({ executablePath: path, args: ["--no-sandbox", "--disable-gpu"] });
const open = async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => { throw error; });
  await page.goto(`file://${process.cwd()}/todo.html`);
  await page.click("text=Sign in");
  await page.getByText("live", { exact: true }).waitFor();
  return page;
};
try {
  const [one, two] = [await open(), await open()];
  await one.fill("#add input", "Call <b>Ben</b>");
  await one.click("text=Add");
  for (const page of [one, two]) await page.getByText("Call <b>Ben</b>").waitFor();
  await two.check("li input");
  await one.locator(".done").waitFor();
  await one.click("text=Remove");
  await two.locator("li").waitFor({ state: "detached" });
} finally {
  await browser.close();
}
