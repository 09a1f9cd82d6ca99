// The rows of one table for the grid. Pages are read when they become visible, by key if possible.
import { signal } from "@preact/signals";
import { isAbort } from "../api/errors.ts";
import { ident, type Params, sql, statement } from "../api/sql.ts";
import { shownExpression } from "../catalog/shown.ts";
import type { Table } from "../catalog/table.ts";
import { castTo, conditions, type Filter, type Order, orderBy, orderTerms, where } from "./condition.ts";

/** One row: the shown text of each column, and the full text of its key. */
export type GridRow = { cells: (string | null)[]; key: string[] };

type Way = { condition?: string; backwards?: boolean; offset?: number; limit?: number; guessed?: boolean };

/** The number of rows after which an offset is too slow. */
const FAR = 50_000;
const CELLS_PER_PAGE = 12_000;
const EXACT_COUNT_LIMIT = 100_000;

export const keyText = (key: string[]): string => JSON.stringify(key);

export class Rows {
  /** Changes whenever there is something new to draw. */
  readonly version = signal(0);
  readonly total = signal<{ count: number; exact: boolean } | null>(null);
  readonly problem = signal<unknown>(null);
  private pages = new Map<number, GridRow[]>();
  private stale = new Set<number>();
  /** Pages whose place is a guess, which tell nothing about the end. */
  private guessed = new Set<number>();
  private reading = new Map<number, AbortController>();
  private counting: AbortController | null = null;
  readonly pageSize: number;

  constructor(readonly table: Table, readonly filters: Filter[], readonly order: Order[]) {
    this.pageSize = Math.max(20, Math.min(200, Math.floor(CELLS_PER_PAGE / Math.max(1, table.columns.length))));
    void this.count();
  }

  row(index: number): GridRow | undefined {
    return this.pages.get(Math.floor(index / this.pageSize))?.[index % this.pageSize];
  }

  /** The place of the row with this key, if it was read. */
  indexOf(key: string): number | undefined {
    for (const [page, rows] of this.pages) {
      const index = rows.findIndex((row) => row && keyText(row.key) === key);
      if (index >= 0) return page * this.pageSize + index;
    }
    return undefined;
  }

  /** Reads what a range of rows needs and gives up what is being read elsewhere. */
  need(from: number, to: number): void {
    const first = Math.max(0, Math.floor(from / this.pageSize));
    const last = Math.max(first, Math.floor(Math.max(from, to - 1) / this.pageSize));
    for (const [page, controller] of this.reading) {
      if (page < first - 1 || page > last + 1) controller.abort();
    }
    for (let page = first; page <= last; page += 1) {
      const known = this.pages.has(page) && !this.stale.has(page);
      // A far page waits while its neighbour is being read, so that the two pages fit together.
      const waits = this.isFar(page) && (this.reading.has(page - 1) || this.reading.has(page + 1));
      if (!known && !waits && !this.reading.has(page)) void this.read(page);
    }
    this.forget(first, last);
  }

  /** Whether the place of a page cannot be told by counting from the beginning. */
  private isFar(page: number): boolean {
    const total = this.total.value;
    const countable = !total || total.exact || this.filters.length > 0 || this.order.length > 0;
    return !countable && page * this.pageSize >= FAR;
  }

  /** Pages far from what is looked at are dropped, so that memory stays small. */
  private forget(first: number, last: number): void {
    if (this.pages.size < 60) return;
    for (const page of this.pages.keys()) {
      if (page < first - 20 || page > last + 20) this.pages.delete(page);
    }
  }

  /** Shows what there is until newer rows arrive. */
  refresh(): void {
    for (const page of this.pages.keys()) this.stale.add(page);
    for (const controller of this.reading.values()) controller.abort();
    this.version.value += 1;
    void this.count();
  }

  dispose(): void {
    for (const controller of this.reading.values()) controller.abort();
    this.counting?.abort();
  }

  private async read(page: number): Promise<void> {
    const controller = new AbortController();
    this.reading.set(page, controller);
    try {
      const rows = await this.fetch(page, controller.signal);
      this.pages.set(page, rows);
      this.stale.delete(page);
      this.problem.value = null;
      if (!this.guessed.has(page)) this.learnEnd(page, rows.length);
    } catch (error) {
      if (!isAbort(error)) this.problem.value = error;
    } finally {
      if (this.reading.get(page) === controller) this.reading.delete(page);
      this.version.value += 1;
    }
  }

  private async fetch(page: number, abort: AbortSignal): Promise<GridRow[]> {
    const { table } = this;
    const params: Params = {};
    const parts = conditions(table, this.filters, params);
    const way = this.way(page, params);
    if (way.condition) parts.push(way.condition);
    const terms = orderTerms(table, this.order);
    const q = `select ${this.selectList()} from ${table.sqlName}${where(parts)}${orderBy(terms, way.backwards)}`
      + ` limit ${way.limit ?? this.pageSize}${way.offset ? ` offset ${way.offset}` : ""}`;
    const { data } = await sql(statement(q, params), abort);
    const rows = data.map((row) => this.rowOf(row));
    if (way.guessed) this.guessed.add(page);
    else this.guessed.delete(page);
    if (!way.backwards) return rows;
    // There are fewer rows than a page, so the beginning of the table is nearer than estimated.
    const missing = Array<GridRow>((way.limit ?? this.pageSize) - rows.length);
    return [...missing, ...rows.reverse()];
  }

  /**
   * How a page is read. An offset makes PostgreSQL count past all rows before it; a condition on the
   * key next to a page that is known does not. A far jump in a table whose size is an estimate goes to
   * the end, or to a share of the key's range, where the key is a number.
   */
  private way(page: number, params: Params): Way {
    const offset = page * this.pageSize;
    const { key } = this.table;
    if (key.length === 0 || this.order.length > 0 || page === 0) return { offset };
    const beside = this.seek(page, params);
    if (beside) return beside;
    const total = this.total.value;
    if (!total || !this.isFar(page)) return { offset };
    const first = this.pages.get(page)?.[0];
    // The page is read again, from its former first row on.
    if (first) return { condition: this.beyond(first, ">=", params), guessed: true };
    const left = total.count - offset;
    if (left <= this.pageSize) return { backwards: true, limit: Math.max(1, left), guessed: true };
    const [only] = key;
    if (key.length > 1 || !/^int[248]$/.test(only!.typname)) return { offset };
    params.share = String(offset / total.count);
    const name = ident(only!.name);
    const range = `select min(${name}) + ((max(${name})::numeric - min(${name})) * cast(:share as numeric))::int8 from ${this.table.sqlName}`;
    return { condition: `${name} >= (${range})`, guessed: true };
  }

  private seek(page: number, params: Params): Way | null {
    const usable = (neighbour: number) => (this.stale.has(neighbour) ? undefined : this.pages.get(neighbour));
    const before = usable(page - 1);
    const edge = before?.length === this.pageSize ? before.at(-1) : usable(page + 1)?.[0];
    if (!edge) return null;
    const behind = edge === before?.at(-1);
    return { condition: this.beyond(edge, behind ? ">" : "<", params), backwards: !behind };
  }

  /** A comparison of the key with that of a row. */
  private beyond(edge: GridRow, operator: string, params: Params): string {
    const { key } = this.table;
    key.forEach((_column, index) => (params[`k${index}`] = edge.key[index] ?? null));
    const columns = key.map(({ name }) => ident(name)).join(", ");
    const values = key.map((column, index) => castTo(`k${index}`, column)).join(", ");
    return `(${columns}) ${operator} (${values})`;
  }

  private selectList(): string {
    const { columns, key } = this.table;
    const cells = columns.map((column, index) => `${shownExpression(column)} as c${index}`);
    return [...cells, ...key.map(({ name }, index) => `${ident(name)}::text as k${index}`)].join(", ") || "null as c0";
  }

  private rowOf(row: Record<string, unknown>): GridRow {
    return {
      cells: this.table.columns.map((_column, index) => row[`c${index}`] as string | null),
      key: this.table.key.map((_column, index) => row[`k${index}`] as string),
    };
  }

  /** A page that is not full is the last one. */
  private learnEnd(page: number, length: number): void {
    const end = page * this.pageSize + length;
    const { count, exact } = this.total.value ?? { count: 0, exact: false };
    // After a guessed page the row numbers are guesses too.
    if (length < this.pageSize && (length > 0 || page === 0)) this.total.value = { count: end, exact: this.guessed.size === 0 };
    else if (length === 0 && !exact) void this.count(true);
    else if (end >= count) this.total.value = { count: end + this.pageSize, exact: false };
  }

  /** Small tables and filtered ones are counted up to a limit; large ones keep PostgreSQL's estimate. */
  private async count(exactly = false): Promise<void> {
    this.counting?.abort();
    const controller = new AbortController();
    this.counting = controller;
    const { table, filters } = this;
    const { estimate } = table.entry;
    if (!exactly && filters.length === 0 && estimate > EXACT_COUNT_LIMIT) {
      this.total.value ??= { count: Math.round(estimate), exact: false };
      return;
    }
    const params: Params = {};
    const inner = `select 1 from ${table.sqlName}${where(conditions(table, filters, params))}`;
    const limit = exactly ? "" : ` limit ${EXACT_COUNT_LIMIT + 1}`;
    try {
      const { data } = await sql(statement(`select count(*)::float8 as n from (${inner}${limit}) counted`, params), controller.signal);
      const count = Number(data[0]?.n ?? 0);
      this.total.value = { count, exact: exactly || count <= EXACT_COUNT_LIMIT };
    } catch (error) {
      if (!isAbort(error)) this.problem.value = error;
    }
  }
}
