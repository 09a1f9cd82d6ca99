// What is open in the Tables area: one table with its filters, order, place and live feed.
import { signal } from "@preact/signals";
import { type Change, watch } from "../api/feed.ts";
import { showValue } from "../api/json.ts";
import { isCut } from "../catalog/shown.ts";
import { type Column, loadTable, type Table } from "../catalog/table.ts";
import type { TableEntry } from "../catalog/tables.ts";
import type { Place } from "../grid/grid.tsx";
import type { Filter, Order } from "./condition.ts";
import { keyText, Rows } from "./rows.ts";

/** A column that an update has changed, with its former text. */
export type Difference = { name: string; was: string | null };
export type FeedEntry = { id: number; at: Date; change: Change | null; text: string; latency: number | null; differences: Difference[] };

const FEED_LENGTH = 200;
const FLASH = 1_600;
/** Milliseconds for which changes are collected before they are shown. */
const GATHERED = 16;
/** Larger batches are shown without what changed in each row. */
const COMPARED = 50;
/** Types whose text is the same in an event and in the grid. */
const COMPARABLE = new Set(["int2", "int4", "int8", "numeric", "text", "varchar", "bool", "date", "uuid"]);

/** A change of our own: when it was sent, and for an edit what it replaced by what. */
type Sent = { at: number; edit?: Difference & { value: string | null } };

const AS_TYPED = new Set(["text", "varchar"]);
const isComparable = ({ typname, labels }: Column): boolean => COMPARABLE.has(typname) || labels !== null;

export class TableView {
  readonly filters = signal<Filter[]>([]);
  readonly order = signal<Order[]>([]);
  readonly rows = signal<Rows>(undefined as unknown as Rows);
  readonly active = signal<Place | null>(null);
  readonly feed = signal<FeedEntry[]>([]);
  /** Why there is no live feed, or what it is waiting for. */
  readonly feedNote = signal<string | null>("Waiting for the feed…");
  /** Whether the service has ended the feed, as when a column was dropped. */
  readonly feedEnded = signal(false);
  /** Whether the table is to be opened again: it has other columns, keys or rights than it had. */
  readonly outdated = signal(false);
  /** Keys of rows that have just changed, by when. */
  readonly flashing = signal(new Map<string, string>());
  /** When our own changes were sent and what they replaced, by key. */
  private sent = new Map<string, Sent>();
  private counter = 0;
  private unwatch: () => void = () => undefined;
  private received: Change[] = [];
  private taking: ReturnType<typeof setTimeout> | undefined;
  private refreshing: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly table: Table, filters: Filter[]) {
    this.filters.value = filters;
    this.rows.value = new Rows(table, filters, []);
    this.listen();
  }

  static async open(entry: TableEntry, filters: Filter[], abort: AbortSignal): Promise<TableView> {
    return new TableView(await loadTable(entry, abort), filters);
  }

  close(): void {
    this.unwatch();
    clearTimeout(this.taking);
    clearTimeout(this.refreshing);
    this.rows.value.dispose();
  }

  /** Reads the rows again with other filters or another order. */
  arrange(filters: Filter[], order: Order[]): void {
    this.rows.value.dispose();
    this.filters.value = filters;
    this.order.value = order;
    this.active.value = null;
    this.rows.value = new Rows(this.table, filters, order);
  }

  /** Remembers when a change was sent, to tell how long its event took. */
  noteSent(key: string[], edit?: Sent["edit"]): void {
    this.sent.set(keyText(key), { at: performance.now(), edit });
  }

  /** A change that was sent and refused has no event. */
  forgetSent(key: string[]): void {
    this.sent.delete(keyText(key));
  }

  /** An insert whose key the database makes. */
  noteInsert(): void {
    this.sent.set("insert", { at: performance.now() });
  }

  private listen(): void {
    const { kind } = this.table.entry;
    if (kind === "v" || kind === "m" || kind === "f") {
      this.feedNote.value = "Views and foreign tables have no live feed. Open the table behind it.";
      return;
    }
    this.unwatch = watch({
      schema: this.table.entry.schema,
      table: this.table.entry.name,
      onReady: () => {
        this.feedNote.value = null;
        // A change between the reading of the rows and the start of the subscription has no event.
        this.refreshSoon();
      },
      onChanges: (changes) => this.receive(changes),
      onResync: (reason) => {
        this.add(null, `There is a gap (${reason}); the rows were read again.`, null);
        this.refreshSoon();
      },
      onWait: (text) => (this.feedNote.value = `${asSentence(text)} It is tried again.`),
      onEnd: (text) => {
        this.feedNote.value = asSentence(text);
        this.feedEnded.value = true;
      },
    });
  }

  /** Collects changes for a moment, because a statement may send thousands of batches. */
  private receive(changes: Change[]): void {
    // More are not listed.
    this.received = [...this.received, ...changes.slice(-FEED_LENGTH)].slice(-FEED_LENGTH);
    this.taking ??= setTimeout(() => {
      this.taking = undefined;
      this.take(this.received);
      this.received = [];
    }, GATHERED);
  }

  private take(changes: Change[]): void {
    const flashing = new Map(this.flashing.value);
    const flashed: string[] = [];
    for (const change of changes) {
      const key = this.table.key.map(({ name }) => String(change.row[name] ?? change.key.find(([of]) => of === name)?.[1]));
      const text = keyText(key);
      const named = this.table.key.map(({ name }, index) => `${name} ${key[index]}`).join(", ");
      const sent = this.takeSent(change, text);
      const differences = changes.length > COMPARED ? [] : this.differences(change, text, sent);
      this.add(change, named, sent ? performance.now() - sent.at : null, differences);
      flashing.set(text, change.op.toLowerCase());
      flashed.push(text);
    }
    this.flashing.value = flashing;
    setTimeout(() => this.endFlash(flashed), FLASH);
    this.refreshSoon();
  }

  /** The sent edit that this change confirms. Another user may have changed the same row as well. */
  private takeSent(change: Change, key: string): Sent | undefined {
    const name = this.sent.has(key) ? key : change.op === "INSERT" ? "insert" : key;
    const sent = this.sent.get(name);
    if (sent?.edit) {
      const { name: edited, value } = sent.edit;
      const column = this.table.columns.find((one) => one.name === edited);
      const now = change.row[edited];
      // PostgreSQL keeps a text as it was typed, but writes a number or a day in its own way.
      const kept = column && (AS_TYPED.has(column.typname) || column.labels !== null);
      if (kept && now !== undefined && value !== (now === null ? null : showValue(now))) return undefined;
    }
    this.sent.delete(name);
    return sent;
  }

  /** What an update has changed, as far as the former row is known. */
  private differences(change: Change, key: string, sent?: Sent): Difference[] {
    if (change.op !== "UPDATE") return [];
    const own = sent?.edit;
    const index = this.rows.value.indexOf(key);
    const row = index === undefined ? undefined : this.rows.value.row(index);
    return this.table.columns.flatMap((of, column): Difference[] => {
      if (own?.name === of.name) return [own];
      const was = row?.cells[column];
      const now = change.row[of.name];
      if (was === undefined || now === undefined || !isComparable(of) || (was !== null && isCut(of, was))) return [];
      return was === (now === null ? null : showValue(now)) ? [] : [{ name: of.name, was }];
    });
  }

  private endFlash(keys: string[]): void {
    const rest = new Map(this.flashing.value);
    for (const key of keys) rest.delete(key);
    this.flashing.value = rest;
  }

  private add(change: Change | null, text: string, latency: number | null, differences: Difference[] = []): void {
    const entry = { id: (this.counter += 1), at: new Date(), change, text, latency, differences };
    this.feed.value = [entry, ...this.feed.value].slice(0, FEED_LENGTH);
  }

  /** Reads the rows again, and whether others have changed the table. */
  async readAgain(): Promise<void> {
    this.rows.value.refresh();
    const now = await loadTable(this.table.entry).catch(() => null);
    this.outdated.value = now !== null && JSON.stringify(now) !== JSON.stringify(this.table);
  }

  /** Reads what is in view again, at most every 300 ms. */
  refreshSoon(): void {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      this.rows.value.refresh();
    }, 300);
  }
}

const asSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, ".");
