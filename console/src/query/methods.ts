// Stored methods.
import { signal } from "@preact/signals";
import { request, requestJson } from "../api/http.ts";

export type Method = { method: string; q: string; type_hints: unknown; output_format: string | null };

export const methods = signal<Method[] | null>(null);
const PATH = "/api/v4/methods";

export async function loadMethods(): Promise<void> {
  methods.value = await requestJson<Method[]>(PATH);
}

export async function createMethod(method: string, q: string): Promise<void> {
  await request(PATH, { body: { method, q } });
  await loadMethods();
}

export async function changeMethod(method: string, q: string): Promise<void> {
  await request(`${PATH}/${encodeURIComponent(method)}`, { method: "PATCH", body: { q } });
  await loadMethods();
}

export async function dropMethod(method: string): Promise<void> {
  await request(`${PATH}/${encodeURIComponent(method)}`, { method: "DELETE" });
  await loadMethods();
}
