// Who asks: a token that was pasted, or the session that this page began by signing in.
// Both are kept as long as the tab, and never leave this server.

const KEY = "tidegate:graphiql:session";
/** Seconds before its end at which an access token is renewed. */
const MARGIN = 60;

/** The path in front of the service's own paths, where it is not at the root of its host. */
export const base = location.pathname.split("/api/graphql/schema/")[0];

export class Session {
  #kept = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
  #renewal = null;

  /** What was pasted, or the access token of the session; without a wish, "". */
  get token() {
    return this.#kept.token ?? "";
  }

  /** The database whose default user answers while there is no token. */
  get database() {
    return this.#kept.database ?? "";
  }

  get signedIn() {
    return Boolean(this.#kept.refresh);
  }

  paste(token) {
    this.#keep({ token: token.trim(), database: this.database });
  }

  choose(database) {
    this.#keep({ ...this.#kept, database: database.trim() });
  }

  /** A token that is good for the next request. */
  async fresh() {
    if (this.signedIn && Date.now() / 1000 > this.#kept.expires - MARGIN) {
      // One renewal for all who wait: a refresh token counts once.
      this.#renewal ??= this.#renew().finally(() => (this.#renewal = null));
      await this.#renewal;
    }
    return this.token;
  }

  /**
   * Signs in through `/auth` in a window (RFC 6749, section 4.1, with RFC 7636). A browser that is
   * signed in already is not asked for a password.
   */
  async signIn(client) {
    const verifier = random();
    const state = random();
    const redirect = `${location.origin}${base}/assets/graphiql/signed-in.html`;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const asked = new URLSearchParams({
      response_type: "code",
      client_id: client,
      redirect_uri: redirect,
      state,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: "S256",
    });
    const answered = answer(state);
    window.open(`${base}/auth?${asked}`, "tidegate-sign-in", "popup,width=480,height=720");
    const { code, error, error_description: description } = await answered;
    if (!code) throw new Error(description ?? error ?? "nobody signed in");
    await this.#grant({
      grant_type: "authorization_code",
      client_id: client,
      code,
      code_verifier: verifier,
      redirect_uri: redirect,
    });
  }

  /** Ends the session here and at the server. */
  async signOut() {
    const { refresh, client } = this.#kept;
    this.#keep({ database: this.database });
    if (refresh) await post("/api/v4/oauth/revoke", { token: refresh, client_id: client });
  }

  async #renew() {
    const { refresh, client } = this.#kept;
    try {
      await this.#grant({ grant_type: "refresh_token", refresh_token: refresh, client_id: client });
    } catch {
      // The old token says at the next request that it is over.
    }
  }

  async #grant(request) {
    const answered = await post("/api/v4/oauth", request);
    const body = await answered.json();
    if (!answered.ok) throw new Error(body.error_description ?? body.error);
    this.#keep({
      token: body.access_token,
      refresh: body.refresh_token,
      expires: Date.now() / 1000 + body.expires_in,
      client: request.client_id,
      database: this.database,
    });
  }

  #keep(kept) {
    this.#kept = kept;
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  }
}

/** What the window says that was opened with this state. */
function answer(state) {
  return new Promise((resolve) => {
    const channel = new BroadcastChannel("tidegate-sign-in");
    channel.addEventListener("message", ({ data }) => {
      if (data.state !== state) return;
      channel.close();
      resolve(data);
    });
  });
}

function post(path, members) {
  return fetch(base + path, { method: "POST", body: new URLSearchParams(members), credentials: "omit" });
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
