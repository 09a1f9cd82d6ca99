/**
 * Reads CSV (RFC 4180, either line end). An empty field without quotes is null, as PostgreSQL's
 * COPY and the export write null. An unclosed quote is an error, which names the line.
 */
export function parseCsv(text: string): (string | null)[][] {
  const rows: (string | null)[][] = [];
  let row: (string | null)[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  while (at < text.length) {
    const [field, next] = text[at] === '"' ? quoted(text, at) : plain(text, at);
    row.push(field);
    at = next;
    if (text[at] === ",") {
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

function plain(text: string, from: number): [string | null, number] {
  let to = from;
  while (to < text.length && text[to] !== "," && text[to] !== "\n" && text[to] !== "\r") to += 1;
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
