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
