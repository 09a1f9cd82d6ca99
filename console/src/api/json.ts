/** A number that JavaScript cannot hold exactly, kept as it was written. */
export class ExactNumber {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
}

type Context = { source?: string };

const keepDigits = (_key: string, value: unknown, context?: Context): unknown =>
  typeof value === "number" && context?.source !== undefined && String(value) !== context.source
    ? new ExactNumber(context.source)
    : value;

/**
 * Reads JSON without losing digits of numbers.
 * Browsers without "JSON.parse source text access" round numbers.
 */
export function parseExact(text: string): unknown {
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
}

/** Writes a value for people: numbers with all their digits, objects indented. */
export function showValue(value: unknown, indent = 0): string {
  if (typeof value === "string") return value;
  return stringifyExact(value, indent);
}

/** JSON text of a value; exact numbers keep their digits. */
export function stringifyExact(value: unknown, indent = 0): string {
  const numbers: string[] = [];
  const mark = "\u0000number:";
  const text = JSON.stringify(
    value,
    (_key, part) => (part instanceof ExactNumber ? `${mark}${numbers.push(part.text) - 1}` : part),
    indent,
  );
  if (numbers.length === 0) return text ?? "";
  return text.replace(/"\\u0000number:(\d+)"/g, (_all, index) => numbers[Number(index)] ?? "0");
}
