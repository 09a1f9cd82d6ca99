// A person without JavaScript who signs up in docs/how-to/members.md: opens the application's
// address, fills in the form, and follows the redirects back to the application.
const [, , address, name] = process.argv;
const cookies = new Map();

async function load(url, options = {}) {
  const answer = await fetch(url, { redirect: "manual", headers: { cookie: jar(new URL(url)) }, ...options });
  for (const cookie of answer.headers.getSetCookie()) {
    const [pair] = cookie.split(";");
    const [key] = pair.split("=");
    cookies.set(`${new URL(url).origin} ${key}`, pair);
  }
  const location = answer.headers.get("location");
  if (location) return load(new URL(location, url).href);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
  return { url, text };
}

const jar = ({ origin }) => [...cookies].filter(([key]) => key.startsWith(`${origin} `)).map(([, pair]) => pair).join("; ");

const page = await load(address);
const form = page.text.split("<form ").find((form) => form.includes('value="sign_up"')).split("</form>")[0];
const attribute = (element, name) => element.split(`${name}="`)[1]?.split('"')[0].replaceAll("&amp;", "&");
const fields = form.split("<input ").filter((input) => input.includes('type="hidden"'));
const body = new URLSearchParams(fields.map((input) => [attribute(input, "name"), attribute(input, "value")]));
body.set("username", name);
body.set("email", `${name}@example.org`);
body.set("password", `${name}-12345`);
const action = new URL(attribute(form, "action"), page.url).href;
const welcome = await load(action, { method: "POST", body, headers: { cookie: jar(new URL(action)), origin: new URL(action).origin } });
if (welcome.text !== `Welcome, ${name}!`) throw new Error(welcome.text);
