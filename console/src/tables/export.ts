import { request } from "../api/http.ts";
import { ident, type Params, statement } from "../api/sql.ts";
import { sayDone, sayError } from "../parts/notice.tsx";
import { conditions, orderBy, orderTerms, where } from "./condition.ts";
import type { TableView } from "./view.ts";

/** Saves what the grid shows, all of its rows, as CSV. The server streams it. */
export async function exportCsv(view: TableView): Promise<void> {
  const { table } = view;
  const params: Params = {};
  const list = table.columns.map(({ name }) => ident(name)).join(", ");
  const q = `select ${list} from ${table.sqlName}${where(conditions(table, view.filters.value, params))}`
    + orderBy(orderTerms(table, view.order.value));
  try {
    const answer = await request("/api/v4/sql", { body: { ...statement(q, params), output_format: "csv" } });
    saveFile(await answer.blob(), `${table.entry.name}.csv`);
    sayDone("The rows were exported.");
  } catch (error) {
    sayError(error);
  }
}

/** Gives a file to the browser's downloads. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
