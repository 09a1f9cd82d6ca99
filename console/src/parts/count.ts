/** A number of things: "1 row", "2,000 rows". */
export const countOf = (number: number, thing: string): string => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
