// The address of what is shown, behind the `#`, so that every page of the console works at `/` too.
import { signal } from "@preact/signals";
import { type Filter, isFilter } from "./tables/condition.ts";

export type Route =
  | { area: "tables"; schema?: string; table?: string; filters?: Filter[] }
  | { area: "query" }
  | { area: "activity" }
  | { area: "people"; part: string };

export const route = signal<Route>(read());

function read(): Route {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [area, first, second] = path.split("/").map(decoded);
  if (area === "query" || area === "activity") return { area };
  if (area === "people") return { area, part: first ?? "users" };
  return { area: "tables", schema: first, table: second, filters: filtersOf(search) };
}

/** A part of the path; one with malformed percent-encoding is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The filters in an address. Anyone can write a link, so anything unexpected gives no filters. */
function filtersOf(search: string): Filter[] {
  try {
    const filters: unknown = JSON.parse(new URLSearchParams(search).get("filters") ?? "[]");
    return Array.isArray(filters) && filters.every(isFilter) ? filters : [];
  } catch {
    return [];
  }
}

/** Areas of the owner alone. */
export const OF_OWNERS = ["people", "activity"];

/** The address of a route. */
export function hrefOf(to: Route): string {
  if (to.area === "query" || to.area === "activity") return `#/${to.area}`;
  if (to.area === "people") return `#/people/${encodeURIComponent(to.part)}`;
  if (!to.schema || !to.table) return "#/tables";
  const path = `#/tables/${encodeURIComponent(to.schema)}/${encodeURIComponent(to.table)}`;
  return to.filters?.length ? `${path}?${new URLSearchParams({ filters: JSON.stringify(to.filters) })}` : path;
}

export const goTo = (to: Route): void => {
  location.hash = hrefOf(to);
};

addEventListener("hashchange", () => (route.value = read()));
