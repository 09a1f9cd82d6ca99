// The address of what is shown, behind the `#`, so that every page of the console works at `/` too.
import { signal } from "@preact/signals";
import type { Filter } from "./tables/condition.ts";

export type Route =
  | { area: "tables"; schema?: string; table?: string; filters?: Filter[] }
  | { area: "query" }
  | { area: "people"; part: string };

export const route = signal<Route>(read());

function read(): Route {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [area, first, second] = path.split("/").map((part) => decodeURIComponent(part));
  if (area === "query") return { area };
  if (area === "people") return { area, part: first ?? "users" };
  return { area: "tables", schema: first, table: second, filters: filtersOf(search) };
}

function filtersOf(search: string): Filter[] {
  try {
    return JSON.parse(new URLSearchParams(search).get("filters") ?? "[]") as Filter[];
  } catch {
    return [];
  }
}

/** The address of a route. */
export function hrefOf(to: Route): string {
  if (to.area === "query") return "#/query";
  if (to.area === "people") return `#/people/${encodeURIComponent(to.part)}`;
  if (!to.schema || !to.table) return "#/tables";
  const path = `#/tables/${encodeURIComponent(to.schema)}/${encodeURIComponent(to.table)}`;
  return to.filters?.length ? `${path}?${new URLSearchParams({ filters: JSON.stringify(to.filters) })}` : path;
}

export const goTo = (to: Route): void => {
  location.hash = hrefOf(to);
};

addEventListener("hashchange", () => (route.value = read()));
