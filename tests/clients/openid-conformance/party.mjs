// A relying party and the person who uses it: what one module of a plan runs with.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Browser } from "../demo.mjs";
import * as checks from "./checks.mjs";

/** Who signs in: a user with an address and a name. */
export const PERSON = { username: "conformist", password: "conformist-1234" };

let turn = Promise.resolve();

/** One sign-in at a time: those under way count as attempts, and too many are refused. */
function inTurn(act) {
  const next = turn.then(act);
  turn = next.catch(() => {});
  return next;
}

/** The text of a page that was not expected. */
export const said = (page) => page && `${page.status} ${page.text.replace(/<[^>]*>/g, " ").slice(0, 500)}`;

export const random = (bytes = 16) => randomBytes(bytes).toString("base64url");

export class Party {
  browser = new Browser();
  /** What the suite reports as a warning. */
  warnings = [];
  /** Why the module is not part of the plan for this provider. */
  skipped = [];
  /** What the suite would report as a failure, and the specification of Tidegate demands. */
  differences = [];

  constructor(provider) {
    this.provider = provider;
    this.server = provider.server;
    this.client = provider.clients[0];
  }

  /** An authorization request; a parameter whose value is `undefined` is left out. */
  request(more = {}) {
    const verifier = random(32);
    const parameters = {
      response_type: "code",
      client_id: this.client.id,
      redirect_uri: this.client.callback,
      scope: "openid",
      state: random(),
      nonce: random(),
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      ...more,
    };
    const sent = Object.entries(parameters).filter(([, value]) => value !== undefined);
    return { ...parameters, verifier, query: new URLSearchParams(sent) };
  }

  address(request) {
    return `${this.server.authorization_endpoint}?${request.query}`;
  }

  /**
   * Opens an address, fills in the pages that follow as the person, and returns where it ended: an
   * address of the client, or a page. `shown` names the forms on the way.
   */
  async walk(start) {
    let page = await start;
    const shown = [];
    while (shown.length < 6) {
      if (page.location?.startsWith(this.client.callback)) {
        return { url: new URL(page.location), shown };
      }
      if (page.location) page = await this.browser.get(page.location);
      else if (page.status === 200 && page.text.includes('name="step" value="sign_in"')) {
        shown.push("sign_in");
        const form = page;
        page = await inTurn(() => this.browser.submit(form, "sign_in", PERSON));
      } else if (page.status === 200 && page.text.includes('name="step" value="decide"')) {
        shown.push("decide");
        page = await this.browser.submit(page, "decide", { decision: "allow" });
      } else return { page, shown };
    }
    throw new Error(`the pages have no end: ${shown}`);
  }

  /** Goes to the authorization endpoint; returns the request, the response's URL and the forms. */
  async authorize(more) {
    const request = this.request(more);
    return { request, ...(await this.walk(this.browser.get(this.address(request)))) };
  }

  /** Goes there and expects a code. */
  async codeFor(more) {
    const { request, url, page, shown } = await this.authorize(more);
    assert.ok(url, said(page));
    return { request, shown, code: checks.code(this.server, url, request.state) };
  }

  /** Sends a form to the token endpoint, authenticated as the client. */
  async post(form, method = "client_secret_basic") {
    assert.ok(this.server.token_endpoint_auth_methods_supported.includes(method), method);
    const { id, secret } = this.client;
    const body = new URLSearchParams(form);
    const headers = {};
    if (method === "client_secret_basic") {
      const pair = [id, secret].map(encodeURIComponent).join(":");
      headers.authorization = `Basic ${Buffer.from(pair).toString("base64")}`;
    } else {
      body.set("client_id", id);
      body.set("client_secret", secret);
    }
    return answered(await fetch(this.server.token_endpoint, { method: "POST", headers, body }));
  }

  redeem({ request, code }, method) {
    const form = {
      grant_type: "authorization_code", code, redirect_uri: request.redirect_uri,
      code_verifier: request.verifier,
    };
    return this.post(form, method);
  }

  /** The claims of the ID token in a token response to this request. */
  idToken(body, { request, code } = {}) {
    return checks.idToken(this.provider, body.id_token, {
      clientId: this.client.id, nonce: request?.nonce, accessToken: body.access_token, code,
    });
  }

  /** The whole of the code flow; every condition of the suite's happy path holds. */
  async signIn(more, method) {
    const begun = await this.codeFor(more);
    return { ...begun, ...(await this.completed(begun, method)) };
  }

  /** The second half: tokens and userinfo for a code. */
  async completed(begun, method) {
    const answer = await this.redeem(begun, method);
    checks.tokens(answer);
    const claims = await this.idToken(answer.body, begun);
    const info = checks.userInfo(await this.userInfo(answer.body.access_token), claims.sub);
    return { tokens: answer.body, claims, info };
  }

  async userInfo(token, options = {}) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    return answered(await fetch(this.server.userinfo_endpoint, { headers, ...options }));
  }

  /** Without a page: the person is signed in, or one of the errors that ask for a page comes back. */
  async isSignedIn() {
    const { request, url, shown } = await this.authorize({ prompt: "none", state: random(96) });
    assert.deepEqual(shown, []);
    if (url.searchParams.has("code")) return true;
    checks.refusal(this.server, url, request.state, checks.NEEDS_A_PAGE);
    return false;
  }

  /** Warns of claims that the scopes ask for and the userinfo endpoint lacks. */
  warnOfMissing(info, scope) {
    const asked = scope.split(" ").flatMap((name) => checks.CLAIMS_OF_SCOPES[name]);
    const missing = asked.filter((name) => !(name in info));
    if (missing.length > 0) this.warnings.push(`userinfo lacks ${missing.join(", ")}`);
  }
}

async function answered(answer) {
  const text = await answer.text();
  let body = text;
  try {
    body = JSON.parse(text);
  } catch {
    // Not JSON: the conditions look at the content type.
  }
  return { status: answer.status, headers: answer.headers, body };
}
