// A page of Chromium in which an error of the page is the client's own.
import { chromium } from 'playwright-core';

/** How long anything may take, in milliseconds, before the client calls it hung. */
export const PATIENCE = 60_000;

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

export const open = async () => {
  const browser = await launch();
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('pageerror', (error) => { throw error; });
  return { browser, page };
};
