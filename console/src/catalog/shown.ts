// How a column's values are read for the grid: as PostgreSQL's text, cut where they may be long.
import { ident } from "../api/sql.ts";
import type { Column } from "./table.ts";

/** Characters of a long value that the grid reads; the whole value is read when it is opened. */
export const SHOWN = 240;

const SHORT = new Set([
  "bool", "int2", "int4", "int8", "oid", "float4", "float8", "money", "uuid",
  "date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet", "cidr", "macaddr",
]);
const NUMBERS = new Set(["int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"]);

/** Short names of types, where the SQL standard's are long. */
const ALIASES: [RegExp, string][] = [
  [/^timestamp with time zone/, "timestamptz"], [/^timestamp without time zone/, "timestamp"],
  [/^time with time zone/, "timetz"], [/^time without time zone/, "time"],
  [/^character varying/, "varchar"], [/^character\b/, "char"], [/^double precision/, "float8"],
];

/** The name of the column's type as PostgreSQL users write it, without length: `integer`, `text[]`. */
export const typeName = (column: Column): string => shortened(column.cast);

/** The name with its length: `varchar(70)`. */
export const fullTypeName = (column: Column): string => shortened(column.type);

const shortened = (type: string): string => ALIASES.reduce((name, [long, short]) => name.replace(long, short), type);

export const isNumber = (column: Column): boolean => NUMBERS.has(column.typname);
const isShort = (column: Column): boolean => SHORT.has(column.typname) || column.labels !== null;

/** The SQL expression that shows a column. One character more than `SHOWN` says that the value was cut. */
export function shownExpression(column: Column): string {
  const name = ident(column.name);
  if (isShort(column)) return `${name}::text`;
  // Hexadecimal text of all bytes would be twice the value.
  if (column.typname === "bytea") return `'\\x' || encode(substring(${name} for ${SHOWN / 2}), 'hex')`;
  return `left(${name}::text, ${SHOWN + 1})`;
}

export const isCut = (column: Column, text: string): boolean =>
  column.typname === "bytea" ? text.length >= SHOWN + 2 : !isShort(column) && text.length > SHOWN;
