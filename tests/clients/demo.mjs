// A demo with settings of its own, a browser that keeps cookies, and a person at another provider:
// what several clients need.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Starts a demo with these settings as environment variables; `stop` ends it and removes its data.
export async function demo(settings) {
  const folder = await mkdtemp(join(tmpdir(), "tidegate-clients-"));
  await chmod(folder, 0o755);
  const data = join(folder, "demo");
  const child = spawn(
    process.env.TIDEGATE_TEST_BINARY,
    ["demo", "--data-dir", data],
    {
      env: { ...process.env, TIDEGATE_URL: "", TIDEGATE_LISTEN: "127.0.0.1:0", ...settings },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  // Ends the demo even if the client fails.
  process.on("exit", () => child.kill());
  let ready = false;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith("Ctrl-C")) {
      ready = true;
      break;
    }
  }
  if (!ready) throw new Error("the demo did not start");
  child.stdout.resume();
  const env = await readFile(join(data, "demo.env"), "utf8");
  const url = /^TIDEGATE_URL=(.*)$/m.exec(env)[1].replaceAll(/["']/g, "");
  const stop = async () => {
    child.kill();
    // Of one that has ended already no event comes.
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    await rm(folder, { recursive: true, force: true });
  };
  return { url, stop };
}

// Posts a JSON body.
export async function post(url, body, token) {
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

// Signs in with a password.
export function passwordGrant(url, username, password) {
  return post(`${url}/api/v4/oauth`, {
    grant_type: "password",
    username,
    password,
    database: "demo",
    client_id: "demo-app",
  });
}

// A browser: it keeps cookies by host, and follows nothing by itself.
export class Browser {
  cookies = new Map();

  async get(url) {
    return this.send(url, {});
  }

  // Fills in the form of a page whose step has this name, and sends it.
  async submit(page, step, fields) {
    const forms = page.text.split("<form").slice(1);
    const form = forms.find((text) => text.includes(`name="step" value="${step}"`));
    if (!form) throw new Error(`no form ${step} on\n${page.text}`);
    const attribute = (pattern) =>
      pattern.exec(form)[1].replaceAll("&amp;", "&").replaceAll("&quot;", '"');
    const body = new URLSearchParams({
      step,
      form_token: attribute(/name="form_token" value="([^"]*)"/),
      ...fields,
    });
    const action = new URL(attribute(/action="([^"]*)"/), page.url);
    return this.send(action, { method: "POST", body });
  }

  async send(url, options) {
    const { host } = new URL(url);
    const jar = this.cookies.get(host) ?? new Map();
    this.cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, {
      redirect: "manual",
      ...options,
      headers: { ...(cookie && { cookie }) },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value === "" || /expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    const location = answer.headers.get("location");
    return {
      url: String(url),
      status: answer.status,
      location: location && new URL(location, url).href,
      text: await answer.text(),
    };
  }
}

// Signs a browser in at npm's oidc-provider, on its pages for developers, and consents. Returns the
// address below `home` to which the provider sends the browser.
export async function signInAtProvider(browser, address, name, home) {
  let page = await browser.get(address);
  for (let step = 0; step < 12; step += 1) {
    if (page.location?.startsWith(home)) return page.location;
    if (page.location) {
      page = await browser.get(page.location);
      continue;
    }
    const form = /<form[^>]*action="([^"]*)"/.exec(page.text);
    if (!form) throw new Error(page.text);
    const prompt = /name="prompt" value="([^"]*)"/.exec(page.text)?.[1];
    const body = new URLSearchParams({ prompt, login: name, password: "any" });
    page = await browser.send(new URL(form[1], page.url), { method: "POST", body });
  }
  throw new Error("the provider never came to an end");
}
