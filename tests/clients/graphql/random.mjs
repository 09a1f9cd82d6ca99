// Random queries over a schema say what plain SQL says: `random.mjs [schema [seed]]`.
import assert from "node:assert/strict";
import { ask, authorization, base, sql } from "./service.mjs";

const schemaName = process.argv[2] ?? "public";
let seed = Number(process.argv[3] ?? 7);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
};
const description = await fetch(`${base}/api/v4/sql/schema/${schemaName}`, { headers: { Authorization: authorization } });
// Only types whose form in PostgreSQL's own JSON is ours too.
const plainTypes = new Set(["int2", "int4", "int8", "numeric", "text", "varchar", "bpchar", "bool", "float8", "date", "timestamp", "uuid", "jsonb"]);
const tables = Object.fromEntries((await description.json()).tables
  .filter((table) => table.constraints.some((one) => one.constraint === "primary"))
  .map((table) => [table.name, { ...table, columns: table.columns.filter((one) => plainTypes.has(one._typname) && one._typname !== "jsonb") }]));
const pascal = (name) => name.split("_").map((p) => p[0].toUpperCase() + p.slice(1)).join("");
const camel = (name) => { const p = pascal(name); return p[0].toLowerCase() + p.slice(1); };
const q = (name) => `"${name}"`;
const keyOf = (t) => t.constraints.find((c) => c.constraint === "primary").columns;
// The SQL of a value in our form.
const form = (t, c) => {
  const key = keyOf(t).includes(c.name);
  if (key) return `x.${q(c.name)}::text`;
  if (["int8", "numeric"].includes(c._typname)) return `x.${q(c.name)}::text`;
  return `x.${q(c.name)}`;
};
// A random selection: as GraphQL, and as an SQL expression that makes the same object.
const select = (t, depth, alias) => {
  const fields = [], pairs = [];
  for (const c of t.columns) if (random(2) || !fields.length) { fields.push(c.name); pairs.push(`'${c.name}', ${form(t, c).replaceAll("x.", alias + ".")}`); }
  if (depth > 0) {
    for (const f of t.constraints.filter((c) => c.constraint === "foreign")) {
      const same = t.constraints.filter((c) => c.constraint === "foreign" && c.referenced_table === f.referenced_table);
      if (random(2) && same.length === 1 && f.referenced_table !== t.name) {
        const other = tables[f.referenced_table];
        if (!other) continue;
        const inner = alias + "o" + pairs.length;
        const [g, s] = select(other, depth - 1, inner);
        fields.push(`${camel(other.name)} { ${g} }`);
        const on = f.columns.map((c, i) => `${inner}.${q(f.referenced_columns[i])} = ${alias}.${q(c)}`).join(" and ");
        pairs.push(`'${camel(other.name)}', (select ${s} from ${q(schemaName)}.${q(other.name)} ${inner} where ${on})`);
      }
    }
    for (const other of Object.values(tables)) {
      const keys = other.constraints.filter((c) => c.constraint === "foreign" && c.referenced_table === t.name);
      if (keys.length !== 1 || other.name === t.name || !random(2)) continue;
      if (t.constraints.some((c) => c.constraint === "foreign" && c.referenced_table === other.name)) continue;
      const [f] = keys;
      const inner = alias + "m" + pairs.length;
      const [g, s] = select(other, depth - 1, inner);
      const limit = 1 + random(5), offset = random(3);
      const c = other.columns[random(other.columns.length)];
      const desc = random(2) ? "desc" : "asc";
      fields.push(`${camel(other.name)}(limit: ${limit}, offset: ${offset}, orderBy: {${c.name}: ${desc}}) { ${g} }`);
      const on = f.columns.map((c, i) => `y.${q(c)} = ${alias}.${q(f.referenced_columns[i])}`).join(" and ");
      const order = [`y.${q(c.name)} ${desc}`, ...keyOf(other).map((k) => `y.${q(k)}`)].join(", ");
      const outer = [`${inner}.${q(c.name)} ${desc}`, ...keyOf(other).map((k) => `${inner}.${q(k)}`)].join(", ");
      pairs.push(`'${camel(other.name)}', (select coalesce(json_agg(${s} order by ${outer}), '[]') from (select * from ${q(schemaName)}.${q(other.name)} y where ${on} order by ${order} limit ${limit} offset ${offset}) ${inner})`);
    }
  }
  return [fields.join(" "), `json_build_object(${pairs.join(", ")})`];
};
// A random condition with a value that occurs: as JSON and as SQL.
const condition = async (t) => {
  const c = t.columns[random(t.columns.length)];
  const rows = await sql(`select ${q(c.name)}::text as v from ${q(schemaName)}.${q(t.name)} order by random() limit 1`);
  const v = rows[0].data[0]?.v;
  if (v === undefined) return [{}, "true"];
  if (v === null) return [{ [c.name]: null }, `x.${q(c.name)} is null`];
  const literal = `'${v.replaceAll("'", "''")}'`;
  const number = ["int4", "int2", "float8"].includes(c._typname);
  const value = number ? Number(v) : c._typname === "bool" ? v === "true" : v;
  const ops = { eq: "=", neq: "<>", gt: ">", gte: ">=", lt: "<", lte: "<=" };
  const op = Object.keys(ops)[random(6)];
  return [{ [c.name]: { [op]: value } }, `x.${q(c.name)} ${ops[op]} ${literal}`];
};
let compared = 0, rowsSeen = 0;
for (let n = 0; n < 300; n += 1) {
  const names = Object.keys(tables);
  const t = tables[names[random(names.length)]];
  const [g, s] = select(t, 2, "x");
  let [w, sw] = await condition(t);
  if (random(2)) { const [w2, sw2] = await condition(t); const o = random(2) ? "and" : "or"; w = { [o]: [w, w2] }; sw = `(${sw} ${o} ${sw2})`; }
  if (random(4) === 0) { w = { not: w }; sw = `not (${sw})`; }
  const limit = 1 + random(20), offset = random(10);
  const field = `get${pascal(t.name)}`;
  const query = `query($w: JSON) { ${field}(where: $w, limit: ${limit}, offset: ${offset}) { ${g} } }`;
  const ours = await ask(schemaName, query, { w });
  assert.equal(ours.errors, undefined, query + JSON.stringify(w) + JSON.stringify(ours.errors));
  const order = keyOf(t).map((k) => `x.${q(k)}`).join(", ");
  const plain = await sql(`select ${s} as row from ${q(schemaName)}.${q(t.name)} x where ${sw} order by ${order} limit ${limit} offset ${offset}`);
  const expected = plain[0].data.map((r) => r.row);
  assert.deepEqual(ours.data[field], expected, query + " " + JSON.stringify(w));
  compared += 1; rowsSeen += expected.length;
}
console.log(`${compared} random queries over ${schemaName}, ${rowsSeen} rows`);
