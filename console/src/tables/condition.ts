// Filters and order of the grid, as SQL with parameters.
import { ident, type Params } from "../api/sql.ts";
import type { Column, Table } from "../catalog/table.ts";

export type Operator = "=" | "<>" | "<" | "<=" | ">" | ">=" | "contains" | "starts" | "null" | "not null";
export type Filter = { column: string; operator: Operator; value: string };
export type Order = { column: string; descending: boolean };

export const OPERATORS: [Operator, string][] = [
  ["=", "equals"],
  ["<>", "is not"],
  ["<", "less than"],
  ["<=", "at most"],
  [">", "greater than"],
  [">=", "at least"],
  ["contains", "contains"],
  ["starts", "starts with"],
  ["null", "is empty (NULL)"],
  ["not null", "is not empty"],
];

/** Whether a value of unknown origin is a filter with a known operator. */
export function isFilter(value: unknown): value is Filter {
  if (typeof value !== "object" || value === null) return false;
  const { column, operator, value: text } = value as Record<string, unknown>;
  return typeof column === "string" && typeof text === "string" && OPERATORS.some(([known]) => known === operator);
}

/** The operator as SQL text, from `OPERATORS` and never from the filter. */
function operatorSql(operator: Operator): string {
  const known = OPERATORS.find(([name]) => name === operator);
  if (!known) throw new Error(`The filter has an unknown operator: ${operator}.`);
  return known[0];
}

export const needsValue = (operator: Operator): boolean => operator !== "null" && operator !== "not null";

const escapeLike = (text: string): string => text.replace(/[\\%_]/g, "\\$&");

/** The text of a value cast to the type of its column. */
export const castTo = (parameter: string, column: Column): string => `cast(:${parameter} as ${column.cast})`;

/** A condition such as `"a" = cast(:f0 as int4)`; parameters are added to `params`. */
function condition(filter: Filter, column: Column, name: string, params: Params): string {
  const target = ident(column.name);
  switch (filter.operator) {
    case "null":
      return `${target} is null`;
    case "not null":
      return `${target} is not null`;
    case "contains":
      params[name] = `%${escapeLike(filter.value)}%`;
      return `${target}::text ilike :${name}`;
    case "starts":
      params[name] = `${escapeLike(filter.value)}%`;
      return `${target}::text ilike :${name}`;
    default:
      params[name] = filter.value;
      return `${target} ${operatorSql(filter.operator)} ${castTo(name, column)}`;
  }
}

/** The conditions of all filters whose column exists. */
export function conditions(table: Table, filters: Filter[], params: Params): string[] {
  return filters.flatMap((filter, index) => {
    const column = table.columns.find(({ name }) => name === filter.column);
    return column ? [condition(filter, column, `f${index}`, params)] : [];
  });
}

export const where = (parts: string[]): string => (parts.length > 0 ? ` where ${parts.join(" and ")}` : "");

/** The order of the grid: the chosen order, then the key, so that pages do not overlap. */
export function orderTerms(table: Table, order: Order[]): Order[] {
  const chosen = order.filter(({ column }) => table.columns.some(({ name }) => name === column));
  const rest = table.key.filter(({ name }) => !chosen.some(({ column }) => column === name));
  return [...chosen, ...rest.map(({ name }) => ({ column: name, descending: false }))];
}

export function orderBy(terms: Order[], backwards = false): string {
  if (terms.length === 0) return "";
  const parts = terms.map(({ column, descending }) =>
    `${ident(column)} ${descending !== backwards ? "desc nulls first" : "asc nulls last"}`);
  return ` order by ${parts.join(", ")}`;
}
