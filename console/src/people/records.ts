// Users and clients of the database, over the REST endpoints that only its owner may use.
import { request, requestJson } from "../api/http.ts";

export type User = {
  name: string;
  email: string | null;
  properties: Record<string, unknown> | null;
  user_group: string | string[] | null;
  default_user: boolean;
  /** A member has no role of its own. */
  kind: "role" | "member";
  /** Neither signs in nor sends requests. */
  disabled: boolean;
};
export type Client = {
  id: string;
  name: string;
  redirect_uri: string[];
  homepage: string | null;
  description: string | null;
  public: boolean;
  confirm: boolean;
  two_factor: boolean;
  allow_signup: boolean;
  grants: string[];
};
export type Members = Record<string, unknown>;

const USERS = "/api/v4/users";
const CLIENTS = "/api/v4/clients";
const one = (path: string, name: string): string => `${path}/${encodeURIComponent(name)}`;

export const groupsOf = (user: User): string[] =>
  user.user_group === null ? [] : Array.isArray(user.user_group) ? user.user_group : [user.user_group];

const PAGE = 100;
/** Users by name, after a name: a database may have millions. `more` says whether others follow. */
export const loadUsers = async (after: string): Promise<{ users: User[]; more: boolean }> => {
  const users = await requestJson<User[]>(`${USERS}?limit=${PAGE + 1}&after=${encodeURIComponent(after)}`);
  return { users: users.slice(0, PAGE), more: users.length > PAGE };
};
/** The first thousand users with a role. */
export const loadRoles = (): Promise<User[]> => requestJson(`${USERS}?kind=role`);
/** The first members, of whom a database may have millions. */
export const loadFirstMembers = (): Promise<User[]> => requestJson(`${USERS}?kind=member&limit=${PAGE}`);
export const createUser = (body: Members): Promise<Response> => request(USERS, { body });
export const changeUser = (name: string, body: Members): Promise<Response> => request(one(USERS, name), { method: "PATCH", body });
export const dropUser = (name: string, reassign: boolean): Promise<Response> =>
  request(`${one(USERS, name)}${reassign ? "?reassign=true" : ""}`, { method: "DELETE" });
/** The names of a group's first users and members. */
export const usersOfGroup = async (group: string, limit: number): Promise<string[]> =>
  (await requestJson<User[]>(`${USERS}?${new URLSearchParams({ group, limit: String(limit) })}`)).map(({ name }) => name);
/** Puts a user into a group, which is made with its first user. */
export async function addToGroup(name: string, group: string): Promise<void> {
  const groups = groupsOf(await requestJson<User>(one(USERS, name)));
  if (!groups.includes(group)) await changeUser(name, { user_group: [...groups, group] });
}

type WithSecret = { id: string; secret?: string };
export const loadClients = (): Promise<Client[]> => requestJson(CLIENTS);
export const createClient = (body: Members): Promise<WithSecret> => requestJson(CLIENTS, { body });
export const changeClient = (id: string, body: Members): Promise<Response> => request(one(CLIENTS, id), { method: "PATCH", body });
export const rotateSecret = (id: string): Promise<WithSecret> =>
  requestJson(one(CLIENTS, id), { method: "PATCH", body: { rotate_secret: true } });
export const dropClient = (id: string): Promise<Response> => request(one(CLIENTS, id), { method: "DELETE" });

export type SignedIn = {
  id: string;
  user: string;
  client_id: string;
  grant: string;
  created_at: string;
  refreshed_at: string;
  expires_at: string;
  /** Whether it is the session of this page. */
  current: boolean;
};
const SESSIONS = "/api/v4/sessions";
export const loadSessions = (): Promise<SignedIn[]> => requestJson(SESSIONS);
export const endSession = (id: string): Promise<Response> => request(one(SESSIONS, id), { method: "DELETE" });

/** A service outside of Tidegate whose tokens the database accepts. */
export type Issuer = {
  name: string;
  issuer: string;
  audience: string | string[];
  jwks_url?: string | null;
  user_claim?: string | null;
  role_claim?: string | null;
  default_role?: string | null;
  /** The claims that policies read; all, if there is none. */
  claims?: string[] | null;
  create_members?: boolean;
};
const ISSUERS = "/api/v4/issuers";
export const loadIssuers = async (): Promise<Issuer[]> => [await requestJson<Issuer | Issuer[]>(ISSUERS)].flat();
export const createIssuer = (body: Members): Promise<Response> => request(ISSUERS, { body });
export const changeIssuer = (name: string, body: Members): Promise<Response> => request(one(ISSUERS, name), { method: "PATCH", body });
export const dropIssuer = (name: string): Promise<Response> => request(one(ISSUERS, name), { method: "DELETE" });

export type AuditEvent = {
  id: number;
  at: string;
  event: string;
  detail: string | null;
  user: string | null;
  client_id: string | null;
  address: string | null;
  actor: string | null;
};
type AuditPage = { events: AuditEvent[]; next: string | number | null };

/** The events since a time, newest first; at most `pages` thousand. */
export async function loadAudit(since: Date, pages = 5): Promise<AuditEvent[]> {
  const all: AuditEvent[] = [];
  let from: string = since.toISOString();
  for (let page = 0; page < pages; page += 1) {
    const { events, next } = await requestJson<AuditPage>(`/api/v4/audit?${new URLSearchParams({ since: from, limit: "1000" })}`);
    all.push(...events);
    if (events.length < 1000 || next === null) break;
    from = String(next);
  }
  return all.reverse();
}
