// Change events over the WebSocket: one socket, which reconnects and goes on behind the last cursor.
import { effect, signal } from "@preact/signals";
import { home } from "./home.ts";
import { parseExact } from "./json.ts";
import { accessToken, renew } from "./session.ts";

export type Change = { op: "INSERT" | "UPDATE" | "DELETE"; key: [string, unknown][]; row: Record<string, unknown> };
export type Watcher = {
  schema: string;
  table: string;
  onReady: () => void;
  onChanges: (changes: Change[]) => void;
  /** There is a gap: the rows must be read again. */
  onResync: (reason: string) => void;
  /** There are no changes for now; it is tried again. */
  onWait: (sentence: string) => void;
  onEnd: (sentence: string) => void;
};
type Subscription = Watcher & { id: string; cursor?: string; wasLive?: boolean };

/** Close codes of the service for a token that is refused or has expired. */
const REFUSED = 4401;
const EXPIRED = 4440;

/** Ends of a subscription with which the connection is of no use either: the node stops, or we read too slowly. */
const RECONNECT = ["stopped", "slow_consumer"];
/** Ends after which the same subscription may succeed, and the milliseconds until it is tried. */
const LATER = ["feed_unavailable", "subscribe_timeout", "database_unavailable"];
const PAUSE = 5_000;

export const feedState = signal<"off" | "connecting" | "live" | "lost">("off");

let socket: WebSocket | null = null;
let attempt = 0;
let counter = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let usedToken: string | undefined;
const subscriptions = new Map<string, Subscription>();

/** Watches a table until the function that is returned is called. */
export function watch(watcher: Watcher): () => void {
  const id = `w${(counter += 1)}`;
  subscriptions.set(id, { ...watcher, id });
  if (socket?.readyState === WebSocket.OPEN) subscribe(id);
  else connect();
  return () => {
    subscriptions.delete(id);
    if (socket?.readyState === WebSocket.OPEN) send({ type: "unsubscribe", id });
    if (subscriptions.size === 0) close();
  };
}

const send = (message: unknown): void => socket?.send(JSON.stringify(message));

function subscribe(id: string): void {
  const subscription = subscriptions.get(id);
  if (!subscription) return;
  const { schema, table, cursor } = subscription;
  send({ type: "subscription", id, schema, rel: table, ...(cursor && { after: cursor }) });
}

function connect(): void {
  clearTimeout(timer);
  const token = accessToken();
  if (!token || (socket && socket.readyState < WebSocket.CLOSING)) return;
  usedToken = token;
  feedState.value = attempt === 0 ? "connecting" : "lost";
  const opened = new WebSocket(`${home.replace(/^http/, "ws")}/api/v4/events`);
  socket = opened;
  opened.onopen = () => send({ type: "auth", token });
  opened.onmessage = (event) => {
    if (socket === opened) receive(parseExact(String(event.data)) as Message);
  };
  opened.onclose = ({ code }) => {
    if (socket !== opened) return;
    socket = null;
    if (subscriptions.size === 0) return;
    feedState.value = "lost";
    attempt += 1;
    const again = () => (timer = setTimeout(connect, Math.min(15_000, 250 * 2 ** attempt)));
    // The token was refused or has expired: the next one is needed first.
    if (code === REFUSED || code === EXPIRED) void renew().then((renewed) => renewed && again());
    else again();
  };
}

function close(): void {
  clearTimeout(timer);
  const old = socket;
  socket = null;
  attempt = 0;
  old?.close();
  feedState.value = "off";
}

type Message = {
  type: string;
  id?: string;
  cursor?: string;
  reason?: string;
  error?: string;
  message?: string;
  batch?: Record<string, Record<string, Batch>>;
};
type Batch = Record<"INSERT" | "UPDATE" | "DELETE", unknown[][]> & { full_data?: Record<string, unknown>[] };

function receive(message: Message): void {
  if (message.type === "auth_ack") {
    attempt = 0;
    feedState.value = "live";
    for (const id of subscriptions.keys()) subscribe(id);
    return;
  }
  const subscription = subscriptions.get(message.id ?? "");
  if (!subscription) return;
  if (message.cursor) subscription.cursor = message.cursor;
  if (message.type === "subscription_ack") ready(subscription);
  else if (message.type === "batch") subscription.onChanges(changesOf(message.batch ?? {}));
  else if (message.type === "resync") subscription.onResync(message.reason ?? "");
  else if (message.type === "error") end(subscription, message);
}

function ready(subscription: Subscription): void {
  // Without a cursor, changes during the interruption cannot be determined.
  if (subscription.wasLive && !subscription.cursor) subscription.onResync("the connection was lost");
  subscription.wasLive = true;
  subscription.onReady();
}

function end(subscription: Subscription, { error = "", message }: Message): void {
  const { id } = subscription;
  if (RECONNECT.includes(error)) return socket?.close();
  if (LATER.includes(error)) {
    subscription.onWait(message ?? error);
    setTimeout(() => socket?.readyState === WebSocket.OPEN && subscribe(id), PAUSE);
    return;
  }
  subscriptions.delete(id);
  subscription.onEnd(message ?? error);
}

/** The changes of a batch: keys by operation, and the rows in `full_data` in the same order. */
function changesOf(batch: Record<string, Record<string, Batch>>): Change[] {
  const changes: Change[] = [];
  for (const tables of Object.values(batch)) {
    for (const table of Object.values(tables)) {
      const rowOf = rowsByKey(table);
      for (const op of ["INSERT", "UPDATE", "DELETE"] as const) {
        for (const flat of table[op] ?? []) {
          const key: [string, unknown][] = [];
          for (let at = 0; at < flat.length; at += 2) key.push([String(flat[at]), flat[at + 1]]);
          changes.push({ op, key, row: rowOf(key) ?? Object.fromEntries(key) });
        }
      }
    }
  }
  return changes;
}

/** Finds the row of a key. A batch may have ten thousand, so that each is not searched for. */
function rowsByKey({ full_data: rows = [], ...operations }: Batch): (key: Change["key"]) => Record<string, unknown> | undefined {
  const flat = Object.values(operations).find((keys) => keys.length > 0)?.[0] ?? [];
  const names = flat.filter((_part, at) => at % 2 === 0).map(String);
  const text = (values: unknown[]): string => JSON.stringify(values.map(String));
  const found = new Map<string, Record<string, unknown>>();
  for (const row of rows) {
    const key = text(names.map((name) => row[name]));
    if (!found.has(key)) found.set(key, row);
  }
  return (key) => found.get(text(key.map(([, value]) => value)));
}

// A renewed token goes to the open socket; another user gets a socket of its own.
effect(() => {
  const token = accessToken();
  if (!token || !socket || token === usedToken) return;
  const subject = (of: string) => of.split(".")[1];
  if (socket.readyState === WebSocket.OPEN && sameSubject(subject(token), subject(usedToken ?? ""))) {
    usedToken = token;
    send({ type: "auth", token });
  } else {
    close();
    for (const subscription of subscriptions.values()) {
      subscription.cursor = undefined;
      subscription.wasLive = false;
    }
    connect();
  }
});

function sameSubject(left = "", right = ""): boolean {
  const sub = (part: string) => (/"sub":"([^"]*)"/.exec(atob(part.replaceAll("-", "+").replaceAll("_", "/"))) ?? [])[1];
  return sub(left) === sub(right);
}
