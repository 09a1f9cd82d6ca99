import { isNumber, typeName } from "../catalog/shown.ts";
import type { Column } from "../catalog/table.ts";
import type { GridColumn } from "../grid/grid.tsx";
import type { TableView } from "./view.ts";

/** Rows that are looked at for the width of a column. */
const SAMPLE = 40;
const NARROWEST = 70;
const WIDEST = 340;
/** Pixels of a character of the grid's font. */
const CHARACTER = 7.8;
const KEY_MARK = 20;
const LINK = 34;
/** A phone shows no types in the header, so that more columns are in view. */
const phone = matchMedia("(max-width: 720px)");

/** The columns of a table for the grid, as wide as what they show. */
export function gridColumns(view: TableView): GridColumn[] {
  const { table } = view;
  return table.columns.map((column, index) => {
    const order = view.order.value.find((term) => term.column === column.name);
    const isKey = table.key.includes(column);
    const isLink = table.foreignKeys.some(({ columns }) => columns.includes(column.name));
    return {
      name: column.name,
      title: [column.name, column.type, isKey && "key", column.not_null && "not null", column.comment].filter(Boolean).join(" · "),
      width: widthOf(view, column, index, isKey ? KEY_MARK : 0, isLink ? LINK : 0),
      numeric: isNumber(column),
      header: <>{isKey && <span class="key" aria-hidden="true">◆ </span>}{column.name} <small>{typeName(column)}</small></>,
      sort: order && (order.descending ? "descending" : "ascending"),
    };
  });
}

function widthOf(view: TableView, column: Column, index: number, mark: number, link: number): number {
  let longest = 0;
  for (let at = 0; at < SAMPLE; at += 1) {
    const text = view.rows.value.row(at)?.cells[index];
    longest = Math.max(longest, text?.length ?? 4);
  }
  const type = phone.matches ? 0 : 0.8 * typeName(column).length;
  const header = (column.name.length + type + 3) * CHARACTER + 20 + mark;
  return Math.round(Math.min(WIDEST, Math.max(NARROWEST, longest * CHARACTER + 24 + link, Math.min(220, header))));
}
