// Stores drafts and history: only statements, never values or results.
// They are stored for one user of one database, and removed at sign-out.
import { computed, effect, signal } from "@preact/signals";
import { session } from "../api/session.ts";

export type Mode = "sql" | "graphql" | "methods";
export type Past = { mode: Mode; text: string; at: number };

const LENGTH = 100;
const LONGEST = 20_000;

/** The database and user that drafts and history belong to. It stays the same with View as. */
const owner = computed(() => session.value?.claims.sub ?? null);

const draftKey = (mode: Mode): string => `tidegate.console.draft.${mode}:${owner.value}`;
const historyKey = (): string => `tidegate.console.history:${owner.value}`;

export const draft = (mode: Mode): string => (owner.value && localStorage.getItem(draftKey(mode))) ?? "";

export function saveDraft(mode: Mode, text: string): void {
  if (owner.value && text.length <= LONGEST) localStorage.setItem(draftKey(mode), text);
}

function readPast(): Past[] {
  if (!owner.value) return [];
  try {
    return JSON.parse(localStorage.getItem(historyKey()) ?? "[]") as Past[];
  } catch {
    return [];
  }
}

export const past = signal<Past[]>([]);
effect(() => {
  past.value = readPast();
});

export function remember(mode: Mode, text: string): void {
  if (!owner.value || text.trim() === "" || text.length > LONGEST) return;
  past.value = [{ mode, text, at: Date.now() }, ...past.value.filter((entry) => entry.text !== text)].slice(0, LENGTH);
  localStorage.setItem(historyKey(), JSON.stringify(past.value));
}

/** Removes the history and the drafts of the signed-in user. */
export function forget(): void {
  past.value = [];
  localStorage.removeItem(historyKey());
  for (const mode of ["sql", "graphql", "methods"] as const) localStorage.removeItem(draftKey(mode));
}
