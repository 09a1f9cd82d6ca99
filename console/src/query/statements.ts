// Where the statements of a text begin and end, as PostgreSQL reads strings, quoted names and comments.

export type Statement = {
  q: string;
  /** Where it begins in the text. */
  at: number;
};

const COMMENT = String.raw`--[^\n]*|\/\*[\s\S]*?\*\/`;
const QUOTED = String.raw`\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*|)\$[\s\S]*?\$\1\$`;

/** The text without its comments, strings and quoted names. */
export const bare = (text: string): string => text.replace(new RegExp(`${COMMENT}|${QUOTED}`, "g"), " ");

const isEmpty = (text: string): boolean => text.replace(new RegExp(COMMENT, "g"), "").trim() === "";

/** The statements of a text. A semicolon inside parentheses, a string, a comment or a body of SQL ends none. */
export function statementsOf(text: string): Statement[] {
  // The body of such a function has semicolons of its own.
  const whole = /\bbegin\s+atomic\b/i.test(bare(text));
  const cuts = whole ? [] : semicolons(text);
  const found: Statement[] = [];
  let from = 0;
  for (const to of [...cuts, text.length]) {
    const part = text.slice(from, to).replace(/[\s;]+$/, "");
    const blank = part.length - part.trimStart().length;
    if (!isEmpty(part)) found.push({ q: part.trimStart(), at: from + blank });
    from = to + 1;
  }
  return found;
}

const BEGIN = /^\s*(begin(\s+(work|transaction))?|start\s+transaction)\s*$/i;
const COMMIT = /^\s*(commit|end)(\s+(work|transaction))?\s*$/i;
const CONTROL = /^\s*(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release)\b/i;

/** What people know from psql and do otherwise here. */
const OTHERWISE: [RegExp, string][] = [
  [/^\s*\\/, "Commands of psql, which begin with a backslash, do not work here. The Tables area shows tables with their structure."],
  [/^\s*copy\b/i, "COPY is not available here. Import CSV and Export CSV of a table do the same."],
];

/**
 * The statements to send: without a BEGIN and COMMIT around all of them, because a run is one
 * transaction anyway. Fails on any other statement that controls a transaction, and on those of psql.
 */
export function toSend(all: Statement[]): Statement[] {
  const other = OTHERWISE.find(([begins]) => all.some(({ q }) => begins.test(bare(q))));
  if (other) throw new Error(other[1]);
  const framed = all.length > 1 && BEGIN.test(bare(all[0]!.q)) && COMMIT.test(bare(all.at(-1)!.q));
  const inner = framed ? all.slice(1, -1) : all;
  const control = inner.map(({ q }) => CONTROL.exec(bare(q))?.[1]).find((word) => word !== undefined);
  if (!control) return inner;
  throw new Error(
    `${control.toUpperCase().replace(/\s+/, " ")} is not needed here: what you run is one transaction, which is committed if every statement succeeds. ` +
      "BEGIN and COMMIT are taken only around everything that you run.",
  );
}

function semicolons(text: string): number[] {
  const places: number[] = [];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(new RegExp(`${COMMENT}|${QUOTED}|[();]`, "g"))) {
    if (token === "(") depth += 1;
    if (token === ")") depth -= 1;
    if (token === ";" && depth <= 0) places.push(index);
  }
  return places;
}
