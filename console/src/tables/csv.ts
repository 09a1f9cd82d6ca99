/**
 * Reads CSV (RFC 4180, either line end, also with semicolons or tabs as spreadsheets write it). An
 * empty field without quotes is null, as PostgreSQL's COPY and the export have it. Fails with the line of a quote that is never closed.
 */
export function parseCsv(text: string): (string | null)[][] {
  const rows: (string | null)[][] = [];
  let row: (string | null)[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  const separator = separatorOf(text);
  while (at < text.length) {
    const [field, next] = text[at] === '"' ? quoted(text, at) : plain(text, at, separator);
    row.push(field);
    at = next;
    if (text[at] === separator) {
      at += 1;
      if (at === text.length) row.push(null);
      else continue;
    }
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    rows.push(row);
    row = [];
  }
  return rows;
}

/** What stands most often between the names of the first line. */
function separatorOf(text: string): string {
  const names = text.slice(0, text.search(/[\r\n]|$/)).replaceAll(/"[^"]*"/g, "");
  const times = (letter: string) => names.split(letter).length;
  return [",", ";", "\t"].reduce((best, letter) => (times(letter) > times(best) ? letter : best));
}

function plain(text: string, from: number, separator: string): [string | null, number] {
  let to = from;
  while (to < text.length && text[to] !== separator && text[to] !== "\n" && text[to] !== "\r") to += 1;
  return [to === from ? null : text.slice(from, to), to];
}

function quoted(text: string, from: number): [string, number] {
  let value = "";
  let at = from + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end < 0) throw new Error(`The quote in line ${text.slice(0, from).split("\n").length} is never closed.`);
    value += text.slice(at, end);
    if (text[end + 1] !== '"') return [value, end + 1];
    value += '"';
    at = end + 2;
  }
}
