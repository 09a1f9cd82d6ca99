// The rows of one table for the grid: pages are read when they are looked at, by key where possible.
import { signal } from "@preact/signals";
import { isAbort } from "../api/errors.ts";
import { ident, type Params, sql, statement } from "../api/sql.ts";
import { shownExpression } from "../catalog/shown.ts";
import type { Table } from "../catalog/table.ts";
import { castTo, conditions, type Filter, type Order, orderBy, orderTerms, where } from "./condition.ts";

/** One row: the shown text of each column, and the full text of its key. */
export type GridRow = { cells: (string | null)[]; key: string[] };

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

  /** The place of a row that has been read. */
  indexOf(key: string[]): number {
    const wanted = keyText(key);
    for (const [page, rows] of this.pages) {
      const at = rows.findIndex((row) => keyText(row.key) === wanted);
      if (at >= 0) return page * this.pageSize + at;
    }
    return -1;
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
      if (!known && !this.reading.has(page)) void this.read(page);
    }
    this.forget(first, last);
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
      this.learnEnd(page, rows.length);
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
    const seek = this.seek(page, params);
    if (seek) parts.push(seek.condition);
    const terms = orderTerms(table, this.order);
    const q = `select ${this.selectList()} from ${table.sqlName}${where(parts)}${orderBy(terms, seek?.backwards)}`
      + ` limit ${this.pageSize}${seek ? "" : ` offset ${page * this.pageSize}`}`;
    const { data } = await sql(statement(q, params), abort);
    const rows = data.map((row) => this.rowOf(row));
    return seek?.backwards ? rows.reverse() : rows;
  }

  /**
   * A condition on the key next to a page that is known. An offset makes PostgreSQL count past all
   * rows before it; a condition on the key does not. Only for the order by the key itself.
   */
  private seek(page: number, params: Params): { condition: string; backwards: boolean } | null {
    const { key } = this.table;
    const usable = (neighbour: number) => {
      const rows = this.stale.has(neighbour) ? undefined : this.pages.get(neighbour);
      return rows?.length === this.pageSize ? rows : undefined;
    };
    if (key.length === 0 || this.order.length > 0 || page === 0) return null;
    const before = usable(page - 1)?.at(-1);
    const behind = usable(page + 1)?.[0];
    const edge = before ?? behind;
    if (!edge) return null;
    key.forEach((_column, index) => (params[`k${index}`] = edge.key[index] ?? null));
    const columns = key.map(({ name }) => ident(name)).join(", ");
    const values = key.map((column, index) => castTo(`k${index}`, column)).join(", ");
    return { condition: `(${columns}) ${before ? ">" : "<"} (${values})`, backwards: !before };
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
    if (length < this.pageSize && (length > 0 || page === 0)) this.total.value = { count: end, exact: true };
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
