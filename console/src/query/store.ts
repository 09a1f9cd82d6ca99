// What was written: drafts and history. Statements only, never values or answers.
import { signal } from "@preact/signals";

export type Mode = "sql" | "graphql" | "methods";
export type Past = { mode: Mode; text: string; at: number };

const DRAFT = "tidegate.console.draft.";
const HISTORY = "tidegate.console.history";
const LENGTH = 100;
const LONGEST = 20_000;

export const draft = (mode: Mode): string => localStorage.getItem(DRAFT + mode) ?? "";

export function saveDraft(mode: Mode, text: string): void {
  if (text.length <= LONGEST) localStorage.setItem(DRAFT + mode, text);
}

function readPast(): Past[] {
  try {
    return JSON.parse(localStorage.getItem(HISTORY) ?? "[]") as Past[];
  } catch {
    return [];
  }
}

export const past = signal<Past[]>(readPast());

export function remember(mode: Mode, text: string): void {
  if (text.trim() === "" || text.length > LONGEST) return;
  past.value = [{ mode, text, at: Date.now() }, ...past.value.filter((entry) => entry.text !== text)].slice(0, LENGTH);
  localStorage.setItem(HISTORY, JSON.stringify(past.value));
}

/** Forgets the statements that were run, and the drafts. */
export function forget(): void {
  past.value = [];
  localStorage.removeItem(HISTORY);
  for (const mode of ["sql", "graphql", "methods"]) localStorage.removeItem(DRAFT + mode);
}
