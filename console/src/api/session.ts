// Who is signed in. Tokens stay in memory; the tab's storage holds only what a sign-in in progress needs.
import { computed, signal } from "@preact/signals";
import { home } from "./home.ts";
import { type Claims, challengeOf, claimsOf, randomText } from "./pkce.ts";

export type Session = { access: string; refresh: string; claims: Claims; clientId: string };

export const session = signal<Session | null>(null);
/** The session can no longer be renewed: the page asks to sign in again and keeps its state. */
export const sessionEnded = signal(false);
/** The user as whom the owner views the database (View as). */
export const actor = signal<{ name: string; access: string; claims: Claims } | null>(null);

/** The claims in force: those of the user who is viewed as, else of the person. */
export const claims = computed(() => (actor.value ?? session.value)?.claims ?? null);
/** Whether the claims are those of a member, to whom the service gives GraphQL and methods, but no SQL. */
export const isMember = computed(() => claims.value?.kind === "member");
/** The user name without its database. */
export const userName = (of: Claims): string => of.sub.slice(of.sub.indexOf("/") + 1);

export const accessToken = (): string | undefined => (actor.value ?? session.value)?.access;

const PENDING = "tidegate.console.pending";
const RETURNING = "tidegate.console.returning";
const CHANNEL = "tidegate.console.sign-in";
const POPUP = "popup-";
const redirectUri = (): string => `${home}/console/`;

type Pending = { state: string; verifier: string; clientId: string; database: string; hash: string };

export const defaultClient = (): string =>
  new URLSearchParams(location.search).get("client_id") ??
  document.querySelector<HTMLMetaElement>('meta[name="tidegate-client"]')?.content ??
  "tidegate";

async function authorizeUrl(pending: Pending): Promise<string> {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: pending.clientId,
    redirect_uri: redirectUri(),
    state: pending.state,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: "S256",
  });
  if (pending.database) query.set("database", pending.database);
  return `${home}/auth?${query}`;
}

const begin = (clientId: string, database: string, prefix = ""): Pending =>
  ({ state: prefix + randomText(), verifier: randomText(), clientId, database, hash: location.hash });

/** Leaves the page for the sign-in page of the service. */
export async function signIn(clientId: string, database: string): Promise<void> {
  const pending = begin(clientId, database);
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  location.assign(await authorizeUrl(pending));
}

/** Signs in again in a window of its own, so that the page keeps what was typed. */
export async function signInAgain(): Promise<void> {
  const { clientId, claims: was } = session.value ?? {};
  const pending = begin(clientId ?? defaultClient(), was?.database ?? "", POPUP);
  const channel = new BroadcastChannel(CHANNEL);
  const popup = window.open(await authorizeUrl(pending), "tidegate-sign-in", "popup,width=480,height=680");
  if (!popup) throw new Error("The browser has blocked the window for signing in. Allow it and try again.");
  const search = await new Promise<string>((resolve) => {
    channel.onmessage = ({ data }) => {
      if (new URLSearchParams(data).get("state") === pending.state) resolve(data);
    };
  });
  channel.close();
  await redeem(new URLSearchParams(search), pending);
  sessionEnded.value = false;
}

/** Goes on with a sign-in that has come back to this page, or begins one where the tab was signed in. */
export async function resume(): Promise<string | null> {
  const answer = new URLSearchParams(location.search);
  const state = answer.get("state");
  if (state?.startsWith(POPUP)) {
    new BroadcastChannel(CHANNEL).postMessage(location.search);
    window.close();
    return "You are signed in. This window can be closed.";
  }
  const stored = sessionStorage.getItem(PENDING);
  if (state && stored) return comeBack(answer, JSON.parse(stored) as Pending);
  const returning = sessionStorage.getItem(RETURNING);
  const asked = answer.get("signin");
  if (returning || asked) {
    const { clientId, database } = returning
      ? (JSON.parse(returning) as { clientId: string; database: string })
      : { clientId: defaultClient(), database: asked ?? "" };
    await signIn(clientId, database);
    // The page is being left.
    return new Promise(() => undefined);
  }
  return null;
}

async function comeBack(answer: URLSearchParams, pending: Pending): Promise<string | null> {
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", `${location.pathname}${pending.hash}`);
  // `replaceState` triggers no event.
  dispatchEvent(new HashChangeEvent("hashchange"));
  try {
    await redeem(answer, pending);
  } catch (error) {
    sessionStorage.removeItem(RETURNING);
    return error instanceof Error ? error.message : String(error);
  }
  const database = session.value?.claims.database ?? "";
  sessionStorage.setItem(RETURNING, JSON.stringify({ clientId: pending.clientId, database }));
  return null;
}

async function redeem(answer: URLSearchParams, pending: Pending): Promise<void> {
  if (answer.get("state") !== pending.state) throw new Error("This answer belongs to another sign-in. Try again.");
  const code = answer.get("code");
  if (!code) throw new Error(answer.get("error_description") ?? "The sign-in was not completed.");
  const metadata = await (await fetch(`${home}/.well-known/oauth-authorization-server`)).json();
  // RFC 9207: the answer must come from the server that was asked.
  if (answer.get("iss") !== metadata.issuer) throw new Error("The answer comes from another server.");
  const error = await grant(pending.clientId, {
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri(),
    code_verifier: pending.verifier,
  });
  if (error) throw new Error(error);
}

/** Asks for tokens; gives null, or the sentence with which the server refuses them. */
async function grant(clientId: string, members: Record<string, string>): Promise<string | null> {
  const answer = await fetch(`${home}/api/v4/oauth`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_id: clientId, ...members }),
  });
  const body = await answer.json();
  if (!answer.ok) {
    const text: string = body.error_description ?? body.error ?? `The server answered with ${answer.status}.`;
    // A server that is busy or restarting has not refused the token.
    if (answer.status === 429 || answer.status >= 500) throw new Error(text);
    return text;
  }
  const read = claimsOf(body.access_token);
  session.value = { access: body.access_token, refresh: body.refresh_token, claims: read, clientId };
  renewBefore(read.exp);
  return null;
}

let timer: ReturnType<typeof setTimeout> | undefined;
function renewBefore(exp: number): void {
  clearTimeout(timer);
  const left = exp * 1000 - Date.now();
  timer = setTimeout(() => void renew(), Math.max(5_000, left - Math.min(120_000, left / 2)));
}

let renewing: Promise<boolean> | null = null;
/** Gets the next tokens; false when the server refuses, which ends the session. */
export function renew(): Promise<boolean> {
  renewing ??= refresh().finally(() => (renewing = null));
  return renewing;
}

async function refresh(): Promise<boolean> {
  const current = session.value;
  if (!current) return false;
  try {
    const error = await grant(current.clientId, { grant_type: "refresh_token", refresh_token: current.refresh });
    if (error) sessionEnded.value = true;
    return !error;
  } catch {
    // The network or the server is away, the session may be fine: the next request tries again.
    timer = setTimeout(() => void renew(), 15_000);
    return false;
  }
}

/** Revokes the tokens and leads to the page that ends the browser's session. */
export async function signOut(): Promise<void> {
  const current = session.value;
  clearTimeout(timer);
  sessionStorage.removeItem(RETURNING);
  if (current) {
    const body = JSON.stringify({ token: current.refresh, client_id: current.clientId });
    await fetch(`${home}/api/v4/oauth/revoke`, { method: "POST", headers: { "Content-Type": "application/json" }, body })
      .catch(() => undefined);
  }
  session.value = null;
  location.assign(`${home}/signout?${new URLSearchParams({ redirect_uri: redirectUri() })}`);
}
