import { request } from "../api/http.ts";
import { ident, type Params, statement } from "../api/sql.ts";
import { sayDone, sayError } from "../parts/notice.tsx";
import { conditions, orderBy, orderTerms, where } from "./condition.ts";
import type { TableView } from "./view.ts";

/** Saves all rows that match the grid's filters as CSV. The server streams the file. */
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

/** Saves a file as a browser download. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
