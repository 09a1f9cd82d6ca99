// The server's records of the tenant's recent requests, and the grouping of similar statements.
import { requestJson } from "../api/http.ts";

export type Statement = {
  at: string;
  route: string;
  role: string;
  milliseconds: number;
  status: number;
  error: string | null;
  sqlstate: string | null;
  /** The statement without values; null if it was too long or could not be parsed. */
  statement: string | null;
};
export type Feed = {
  live: boolean;
  subscriptions: number;
  lag_bytes: number;
  lag_seconds: number;
  queued_events: number;
  resyncs: number;
  slow_consumers: number;
};
export type Activity = {
  now: string;
  /** The number of requests in each second up to `now`, the oldest first. */
  requests: number[];
  errors: number[];
  /** The recorded statements, the newest first. */
  statements: Statement[];
  feed: Feed | null;
};

export const loadActivity = (signal: AbortSignal): Promise<Activity> => requestJson("/api/v4/activity", { signal });

export type Kind = "slow" | "failed" | "refused";
/** Statements that differ only in their times. */
export type Group = { last: Statement; kind: Kind; count: number; longest: number };

/** Groups statements; the group with the newest statement comes first. */
export function groupsOf(statements: Statement[]): Group[] {
  const groups = new Map<string, Group>();
  for (const statement of statements) {
    const { route, role, status, error, sqlstate, statement: text } = statement;
    const name = JSON.stringify([route, role, status, error, sqlstate, text]);
    const group = groups.get(name);
    const { milliseconds } = statement;
    if (group) Object.assign(group, { count: group.count + 1, longest: Math.max(group.longest, milliseconds) });
    else groups.set(name, { last: statement, kind: kindOf(statement), count: 1, longest: milliseconds });
  }
  return [...groups.values()];
}

/** The SQLSTATE of a missing privilege. */
const PRIVILEGE = "42501";
/** The status of a request whose client disconnected before the response. */
export const CLIENT_LEFT = 499;

function kindOf({ status, error, sqlstate }: Statement): Kind {
  if (status === 401 || status === 403 || sqlstate === PRIVILEGE) return "refused";
  if (status === CLIENT_LEFT) return "slow";
  return status >= 400 || error !== null ? "failed" : "slow";
}

/** The interface that a route belongs to. */
export function interfaceOf(route: string): string {
  if (route.startsWith("/api/v4/sql")) return "SQL";
  if (route.startsWith("/api/graphql")) return "GraphQL";
  if (route === "/api/v4/call/dry") return "method, dry run";
  if (route.startsWith("/api/v4/methods")) return "method definition";
  return route === "/api/v4/call" || route === "/api/v4/rpc" ? "method" : route;
}

/** The time since `at`, in words. */
export function since(at: string, now: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(now) - Date.parse(at)) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : new Date(at).toLocaleDateString("en-GB");
}

/** Formats a duration, given in milliseconds. */
export const duration = (milliseconds: number): string =>
  milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;

export const bytes = (count: number): string =>
  count < 1024 ? `${count} bytes` : count < 1024 ** 2 ? `${Math.round(count / 1024)} KiB` : `${(count / 1024 ** 2).toFixed(1)} MiB`;
