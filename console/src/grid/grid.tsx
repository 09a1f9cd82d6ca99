import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { ColumnPlaces, fill } from "./columns.ts";
import { Scroll } from "./scroll.ts";

export type GridColumn = {
  name: string;
  title: string;
  width: number;
  numeric?: boolean;
  header?: ComponentChildren;
  sort?: "ascending" | "descending";
};
export type Place = { row: number; column: number };
export type GridCell = { text: ComponentChildren; className?: string; tip?: string };

type Props = {
  label: string;
  columns: GridColumn[];
  rows: number;
  /** The content of a cell, or undefined while its row is being read. */
  cell: (row: number, column: number) => GridCell | undefined;
  rowClass?: (row: number) => string | undefined;
  onView?: (from: number, to: number) => void;
  active: Place | null;
  onActive: (place: Place) => void;
  /** Enter, F2 or a double click on a cell; `typed` when a letter began it. */
  onOpen?: (place: Place, typed?: string) => void;
  /** Ctrl+C on a cell. */
  onCopy?: (place: Place) => void;
  onHeader?: (column: number, add: boolean) => void;
  onKey?: (event: KeyboardEvent) => void;
  /** The editor of the active cell, drawn in its place. */
  editor?: ComponentChildren;
};

export const ROW_HEIGHT = 30;
const OVERSCAN = 4;
const NUMBERS_WIDTH = 56;

/** A grid that draws only the cells in view (WAI-ARIA grid pattern with `aria-activedescendant`). */
export function Grid(props: Props) {
  const { columns, rows, active } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const [size, setSize] = useState({ width: 800, height: 400 });
  const scroll = useRef(new Scroll(ROW_HEIGHT)).current;
  const left = useRef(0);
  const id = useMemo(() => `grid${Math.random().toString(36).slice(2, 8)}`, []);
  const places = useMemo(() => {
    const widths = fill(columns.map(({ width }) => width), columns.map(({ numeric }) => !numeric), size.width - NUMBERS_WIDTH);
    return new ColumnPlaces(widths);
  }, [columns, size.width]);
  scroll.rows = rows;
  scroll.view = Math.max(0, size.height - ROW_HEIGHT);
  scroll.moveTo(scroll.top);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const from = Math.max(0, Math.floor(scroll.top) - OVERSCAN);
  const to = Math.min(rows, Math.ceil(scroll.top + scroll.visible) + OVERSCAN);
  useEffect(() => props.onView?.(from, to));

  /** Moves the bar to where the rows are. The scroll event that follows changes nothing. */
  const place = () => {
    if (box.current) box.current.scrollTop = scroll.position;
    draw(0);
  };
  useLayoutEffect(() => {
    if (active) reveal(active);
  }, [active?.row, active?.column]);

  function reveal({ row, column }: Place) {
    const element = box.current;
    if (!element) return;
    const before = scroll.top;
    scroll.show(row);
    const start = places.left(column);
    const end = start + places.width(column);
    const width = size.width - NUMBERS_WIDTH;
    if (start < element.scrollLeft) element.scrollLeft = start;
    else if (end > element.scrollLeft + width) element.scrollLeft = Math.min(start, end - width);
    if (scroll.top !== before) place();
  }

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    left.current = element.scrollLeft;
    if (Math.abs(element.scrollTop - scroll.position) > 1) scroll.follow(element.scrollTop);
    draw(0);
  };

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const onWheel = (event: WheelEvent) => {
      if (!scroll.scaled || event.deltaY === 0 || event.ctrlKey) return;
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * ROW_HEIGHT : event.deltaY;
      scroll.moveTo(scroll.top + pixels / ROW_HEIGHT);
      place();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current) return;
    const at = active ?? { row: 0, column: 0 };
    const page = Math.max(1, Math.floor(scroll.visible) - 1);
    const next = step(event, at, page, { rows, columns: columns.length });
    if (next) {
      event.preventDefault();
      props.onActive(next);
    } else if (active && (event.key === "Enter" || event.key === "F2") && !event.ctrlKey) {
      event.preventDefault();
      props.onOpen?.(active);
    } else if (active && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && event.key !== " ") {
      props.onOpen?.(active, event.key);
    } else if (active && (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "c" && getSelection()?.isCollapsed) {
      props.onCopy?.(active);
    } else props.onKey?.(event);
  };

  const [first, last] = places.between(left.current, left.current + size.width);
  const drawn: number[] = [];
  for (let column = first; column < last; column += 1) drawn.push(column);
  const cellId = (row: number, column: number) => `${id}-${row}-${column}`;
  const shown = active && active.row >= from && active.row < to && active.column >= first && active.column < last;
  const width = places.total + NUMBERS_WIDTH;

  return (
    <div
      ref={box} class="grid" role="grid" aria-label={props.label} tabIndex={0}
      aria-rowcount={rows + 1} aria-colcount={columns.length}
      aria-activedescendant={shown ? cellId(active.row, active.column) : undefined}
      onScroll={onScroll} onKeyDown={onKeyDown}
    >
      <div class="grid-space" role="presentation" style={{ height: `${scroll.height + ROW_HEIGHT}px`, width: `${width}px` }}>
        <div class="grid-window" role="presentation" style={{ height: `${Math.min(size.height, scroll.height + ROW_HEIGHT)}px` }}>
          <div class="grid-body" role="rowgroup" style={{ transform: `translateY(${(from - scroll.top + 1) * ROW_HEIGHT}px)` }}>
            {Array.from({ length: Math.max(0, to - from) }, (_, offset) => from + offset).map((row) => (
              <div
                key={row} role="row" aria-rowindex={row + 2}
                class={`grid-row ${row % 2 ? "odd" : ""} ${active?.row === row ? "current" : ""} ${props.rowClass?.(row) ?? ""}`}
              >
                <span class="grid-number" aria-hidden="true">{(row + 1).toLocaleString("en")}</span>
                {drawn.map((column) => {
                  const content = props.cell(row, column);
                  const isActive = active?.row === row && active.column === column;
                  return (
                    <div
                      key={column} id={cellId(row, column)} role="gridcell" aria-colindex={column + 1}
                      aria-selected={isActive} title={content?.tip}
                      class={`grid-cell ${columns[column]?.numeric ? "numeric" : ""} ${isActive ? "active" : ""} ${content ? (content.className ?? "") : "unread"}`}
                      style={{ left: `${places.left(column) + NUMBERS_WIDTH}px`, width: `${places.width(column)}px` }}
                      onClick={() => (isActive && touched() ? props.onOpen?.({ row, column }) : props.onActive({ row, column }))}
                      onDblClick={() => props.onOpen?.({ row, column })}
                    >
                      {isActive && props.editor ? props.editor : (content?.text ?? "")}
                    </div>
                  );
                })}
              </div>
            ))}
          </div>
          <div class="grid-head" role="rowgroup">
            <div role="row" aria-rowindex={1} class="grid-row">
              <span class="grid-number" aria-hidden="true">#</span>
              {drawn.map((column) => {
                const { name, title, sort, header, numeric } = columns[column]!;
                return (
                  <div
                    key={column} role="columnheader" aria-colindex={column + 1} aria-sort={sort} title={title}
                    class={`grid-cell ${numeric ? "numeric" : ""} ${props.onHeader ? "sortable" : ""}`}
                    style={{ left: `${places.left(column) + NUMBERS_WIDTH}px`, width: `${places.width(column)}px` }}
                    onClick={(event) => props.onHeader?.(column, event.shiftKey)}
                  >
                    <span class="grid-name">{header ?? name}</span>
                    {sort && <span aria-hidden="true" class="sort">{sort === "ascending" ? "↑" : "↓"}</span>}
                  </div>
                );
              })}
            </div>
          </div>
        </div>
      </div>
    </div>
  );
}

/** Fingers have no double click: a second tap opens a cell. */
const touched = (): boolean => matchMedia("(pointer: coarse)").matches;

/** Where a key leads, if it moves at all. */
function step(event: KeyboardEvent, at: Place, page: number, size: { rows: number; columns: number }): Place | null {
  const whole = event.ctrlKey || event.metaKey;
  const to = (row: number, column: number): Place => ({
    row: Math.max(0, Math.min(size.rows - 1, row)),
    column: Math.max(0, Math.min(size.columns - 1, column)),
  });
  switch (event.key) {
    case "ArrowDown": return to(at.row + 1, at.column);
    case "ArrowUp": return to(at.row - 1, at.column);
    case "ArrowRight": return to(at.row, at.column + 1);
    case "ArrowLeft": return to(at.row, at.column - 1);
    case "PageDown": return to(at.row + page, at.column);
    case "PageUp": return to(at.row - page, at.column);
    case "Home": return to(whole ? 0 : at.row, 0);
    case "End": return to(whole ? size.rows - 1 : at.row, size.columns - 1);
    default: return null;
  }
}
