// Which columns of a result can be drawn, as series or as shapes.
import { ExactNumber, showValue } from "../api/json.ts";
import type { ChartData } from "./chart.ts";
import type { Result } from "./run.ts";

const DATE = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)/;
const NUMBER = /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/;
const MOST_SERIES = 6;

function numberOf(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (value instanceof ExactNumber || (typeof value === "string" && NUMBER.test(value))) return Number(String(value));
  return null;
}

const column = (result: Result, index: number): unknown[] => result.rows.map((row) => row[index]);
const all = (values: unknown[], test: (value: unknown) => boolean): boolean =>
  values.some((value) => value != null) && values.every((value) => value == null || test(value));
const isNumeric = (value: unknown): boolean => numberOf(value) !== null;
const isDate = (value: unknown): boolean => typeof value === "string" && DATE.test(value);

/** The result as a chart: the first column that is a time, a number or a name is the horizontal axis. */
export function chartOf(result: Result): ChartData | null {
  if (result.rows.length < 2) return null;
  const columns = result.columns.map((name, index) => ({ name, values: column(result, index) }));
  const numeric = columns.filter(({ values }) => all(values, isNumeric));
  const dated = columns.find(({ values }) => all(values, isDate) && !values.includes(null));
  const first = columns[0]!;
  const along = dated ?? (numeric.length > 1 && numeric[0] === first && rises(first.values) ? first : null);
  const drawn = numeric.filter((of) => of !== along).slice(0, MOST_SERIES);
  if (drawn.length === 0) return null;
  const series = drawn.map(({ name, values }) => ({ name, values: values.map(numberOf) }));
  if (!along) {
    const names = numeric.includes(first) ? undefined : first.values.map((value) => (value == null ? "NULL" : showValue(value)));
    return { x: result.rows.map((_row, index) => index), along: names ? first.name : "row", time: false, names, series };
  }
  const x = along.values.map((value) => (dated ? Date.parse(String(value)) / 1000 : numberOf(value)!));
  // uPlot needs the horizontal values in order.
  const order = x.map((_value, index) => index).sort((a, b) => x[a]! - x[b]!);
  return {
    x: order.map((at) => x[at]!),
    along: along.name,
    time: Boolean(dated),
    series: series.map(({ name, values }) => ({ name, values: order.map((at) => values[at] ?? null) })),
  };
}

const rises = (values: unknown[]): boolean =>
  values.every((value, index) => value != null && (index === 0 || numberOf(value)! > numberOf(values[index - 1])!));

export type Position = [number, number];
export type Shape = { kind: "point" | "line" | "area"; rings: Position[][]; label: string };

type Geometry = { type: string; coordinates?: unknown; geometries?: Geometry[] };

/** The shapes of the first column that holds GeoJSON or PostgreSQL's points. */
export function shapesOf(result: Result): Shape[] | null {
  const index = result.columns.findIndex((_name, at) => all(column(result, at), isGeometry));
  if (index < 0) return null;
  return result.rows.flatMap((row) => {
    const rest = row.filter((value, at) => at !== index && value != null && typeof value !== "object").slice(0, 2);
    return geometryShapes(row[index] as Geometry | null, rest.map(String).join(" · "));
  });
}

const isGeometry = (value: unknown): boolean => {
  const of = value as Record<string, unknown> | null;
  if (typeof of !== "object" || of === null) return false;
  return ("type" in of && ("coordinates" in of || "geometries" in of)) || (Object.keys(of).length === 2 && "x" in of && "y" in of);
};

function geometryShapes(geometry: Geometry | null, label: string): Shape[] {
  if (!geometry) return [];
  if (!("type" in geometry)) {
    const { x, y } = geometry as unknown as { x: number; y: number };
    return [{ kind: "point", rings: [[[x, y]]], label }];
  }
  const { type, coordinates: at } = geometry;
  switch (type) {
    case "Point": return [{ kind: "point", rings: [[at as Position]], label }];
    case "MultiPoint": return (at as Position[]).map((point) => ({ kind: "point", rings: [[point]], label }));
    case "LineString": return [{ kind: "line", rings: [at as Position[]], label }];
    case "MultiLineString": return [{ kind: "line", rings: at as Position[][], label }];
    case "Polygon": return [{ kind: "area", rings: at as Position[][], label }];
    case "MultiPolygon": return [{ kind: "area", rings: (at as Position[][][]).flat(), label }];
    default: return (geometry.geometries ?? []).flatMap((part) => geometryShapes(part, label));
  }
}
