// Random queries over a schema say what plain SQL says: `random.mjs [schema [seed [count]]]`.
import assert from "node:assert/strict";
import { ask, authorization, base, sql } from "./service.mjs";

const schemaName = process.argv[2] ?? "public";
let seed = Number(process.argv[3] ?? 7);
const count = Number(process.argv[4] ?? 300);
const random = (n) => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
};
const pick = (list) => list[random(list.length)];
const some = (list, most) => [...new Set(Array.from({ length: 1 + random(most) }, () => pick(list)))];

const q = (name) => `"${name.replaceAll('"', '""')}"`;
const quote = (text) => `'${text.replaceAll("'", "''")}'`;
const pascal = (name) => name.split("_").map((p) => p.slice(0, 1).toUpperCase() + p.slice(1)).join("");
const camel = (name) => { const p = pascal(name); return p.slice(0, 1).toLowerCase() + p.slice(1); };

// The tables with a primary key, and their columns of types whose form in PostgreSQL's own JSON is ours too.
const plain = new Set(["int2", "int4", "int8", "numeric", "text", "varchar", "bpchar", "bool", "float8", "date", "timestamp", "uuid"]);
const description = await fetch(`${base}/api/v4/sql/schema/${schemaName}`, { headers: { Authorization: authorization } });
const all = (await description.json()).tables;
const tables = all.filter((t) => t.constraints.some((one) => one.constraint === "primary")).map((t) => ({
  ...t,
  from: `${q(schemaName)}.${q(t.name)}`,
  columns: t.columns.filter((one) => plain.has(one._typname) && !one._is_array),
  key: t.constraints.find((one) => one.constraint === "primary").columns,
  foreign: t.constraints.filter((one) => one.constraint === "foreign").sort((a, b) => (a.name < b.name ? -1 : 1)),
}));
const find = (name) => tables.find((t) => t.name === name);

// The relationships of a table by the rules of the contract; a name that something else has is left out.
const relationships = (t) => {
  const found = [];
  const taken = new Set(t.columns.map((c) => c.name));
  const add = (name, to, many, on) => {
    if (taken.has(name)) return false;
    taken.add(name);
    if (to) found.push({ name, to, many, on });
    return true;
  };
  const forward = (key) => (here, there) => key.columns.map((c, i) => `${there}.${q(key.referenced_columns[i])} = ${here}.${q(c)}`).join(" and ");
  const reverse = (key) => (here, there) => forward(key)(there, here);
  const seen = new Set();
  for (const key of t.foreign) {
    if (!seen.has(key.referenced_table)) add(camel(key.referenced_table), find(key.referenced_table), false, forward(key));
    seen.add(key.referenced_table);
  }
  for (const key of t.foreign) add(camel(key.name), find(key.referenced_table), false, forward(key));
  for (const other of tables) {
    const keys = other.foreign.filter((key) => key.referenced_table === t.name);
    for (const key of keys) {
      const long = `${camel(other.name)}By${key.columns.map(pascal).join("")}`;
      if (keys.length > 1 || !add(camel(other.name), other, true, reverse(key))) add(long, other, true, reverse(key));
    }
  }
  return found;
};
for (const t of tables) t.relationships = relationships(t);

// Values that occur, as text.
for (const t of tables) {
  const columns = t.columns.map((c) => `${q(c.name)}::text as ${q(c.name)}`).join(", ");
  const [rows] = await sql(`select ${columns} from ${t.from} order by md5(x::text) limit 40`.replace(t.from, `${t.from} x`));
  t.samples = rows.data;
}

// The SQL of a column's value in our form.
const form = (t, c, alias) => {
  const value = `${alias}.${q(c.name)}`;
  return t.key.includes(c.name) || ["int8", "numeric"].includes(c._typname) ? `${value}::text` : value;
};
const json = (c, text) => {
  if (["int2", "int4", "float8"].includes(c._typname)) return Number(text);
  return c._typname === "bool" ? text === "true" : text;
};
const isText = (c) => ["text", "varchar", "bpchar"].includes(c._typname);

// A random condition: as JSON and as SQL on the rows of an alias.
const comparison = (t, alias) => {
  const c = pick(t.columns);
  const column = `${alias}.${q(c.name)}`;
  const text = t.samples.length ? pick(t.samples)[c.name] : null;
  if (text === null || random(8) === 0) {
    const none = random(2) === 1;
    const forms = none ? [null, { eq: null }, { isNull: true }] : [{ neq: null }, { isNull: false }];
    return [{ [c.name]: pick(forms) }, `${column} is ${none ? "" : "not "}null`];
  }
  const others = t.samples.map((row) => row[c.name]).filter((one) => one !== null);
  if (random(5) === 0) {
    const list = random(6) ? some(others, 4) : [];
    const within = random(2) === 1;
    const values = list.map(quote).join(", ");
    const empty = within ? "false" : "true";
    const words = list.length ? `${column} ${within ? "in" : "not in"} (${values})` : empty;
    return [{ [c.name]: { [within ? "in" : "nin"]: list.map((one) => json(c, one)) } }, words];
  }
  if (isText(c) && random(2)) {
    const part = text.slice(0, 1 + random(3));
    const [operator, value, words] = pick([
      ["like", `%${part}%`, `like ${quote(`%${part}%`)}`],
      ["ilike", `${part.toUpperCase()}%`, `ilike ${quote(`${part.toUpperCase()}%`)}`],
      ["startsWith", part, `is not null and starts_with(${column}::text, ${quote(part)})`],
      ["contains", part, `is not null and position(${quote(part)} in ${column}::text) > 0`],
      ["endsWith", text.slice(-2), `is not null and right(${column}::text, ${text.slice(-2).length}) = ${quote(text.slice(-2))}`],
    ]);
    // A pattern's own letters and what char(n) is filled up with are other tests' business.
    if (!/[%_\\]/.test(part + text.slice(-2)) && c._typname !== "bpchar") {
      // NULL stays unknown below NOT.
      const sure = words.startsWith("is not null") ? `(case when ${column} is null then null else ${words.slice(16)} end)` : `${column} ${words}`;
      return [{ [c.name]: { [operator]: value } }, sure];
    }
  }
  const operators = { eq: "=", neq: "<>", gt: ">", gte: ">=", lt: "<", lte: "<=" };
  const operator = pick(Object.keys(operators));
  const value = json(c, text);
  const short = operator === "eq" && random(2);
  return [{ [c.name]: short ? value : { [operator]: value } }, `${column} ${operators[operator]} ${quote(text)}`];
};
let aliases = 0;
const condition = (t, alias, depth = 2) => {
  const kind = depth > 0 ? random(7) : 6;
  if (kind === 0) {
    const [w, s] = condition(t, alias, depth - 1);
    return [{ [pick(["not", "NOT", "Not"])]: w }, `(not ${s})`];
  }
  if (kind <= 2) {
    const parts = Array.from({ length: random(4) }, () => condition(t, alias, depth - 1));
    const word = kind === 1 ? "and" : "or";
    const none = kind === 1 ? "true" : "false";
    return [{ [pick([word, word.toUpperCase()])]: parts.map(([w]) => w) }, `(${parts.map(([, s]) => s).join(` ${word} `) || none})`];
  }
  if (kind <= 4 && t.relationships.length) {
    const there = pick(t.relationships);
    const inner = `e${aliases += 1}`;
    const [w, s] = random(4) ? condition(there.to, inner, depth - 1) : [{}, "true"];
    return [{ [there.name]: w }, `(exists (select from ${there.to.from} ${inner} where ${there.on(alias, inner)} and ${s}))`];
  }
  return comparison(t, alias);
};

// A random order behind which the primary key decides.
const ordering = (t) => {
  const terms = random(4) ? some(t.columns, 2).map((c) => {
    const direction = pick(["asc", "desc"]);
    const nulls = pick(["", "_nulls_first", "_nulls_last"]);
    return [c.name, direction + nulls, `${direction}${nulls.replaceAll("_", " ")}`];
  }) : [];
  const literal = terms.length === 1 && random(2)
    ? `{${terms[0][0]}: ${terms[0][1]}}`
    : `[${terms.map(([name, how]) => `{${name}: "${how}"}`).join(", ")}]`;
  const rest = t.key.filter((name) => !terms.some(([one]) => one === name));
  const of = (alias) => [...terms.map(([name, , how]) => `${alias}.${q(name)} ${how}`), ...rest.map((name) => `${alias}.${q(name)}`)].join(", ");
  return [literal, of];
};

// A random selection: as GraphQL, and as an SQL expression that makes the same object.
const variables = [];
const select = (t, depth, alias) => {
  const fields = [], pairs = [];
  const add = (field, key, value) => { fields.push(field); pairs.push(`'${key}', ${value}`); };
  for (const c of some(t.columns, 4)) {
    if (random(4)) add(c.name, c.name, form(t, c, alias));
    else add(`a${fields.length}: ${c.name}`, `a${fields.length}`, form(t, c, alias));
  }
  if (random(5) === 0) add("__typename", "__typename", `'${pascal(t.name)}'`);
  if (depth === 0) return [fields.join(" "), `json_build_object(${pairs.join(", ")})`];
  for (const there of t.relationships) {
    if (random(3)) continue;
    const inner = `s${aliases += 1}`;
    const [g, s] = select(there.to, depth - 1, inner);
    if (!there.many) {
      add(`${there.name} { ${g} }`, there.name, `(select ${s} from ${there.to.from} ${inner} where ${there.on(alias, inner)})`);
      continue;
    }
    const [limit, offset] = [random(6), random(3)];
    const [literal, order] = ordering(there.to);
    const [w, sw] = random(3) ? [{}, "true"] : condition(there.to, inner, 1);
    const name = `w${variables.length}`;
    variables.push([name, w]);
    const rows = `select * from ${there.to.from} ${inner} where ${there.on(alias, inner)} and ${sw} order by ${order(inner)} limit ${limit} offset ${offset}`;
    add(
      `${there.name}(where: $${name}, limit: ${limit}, offset: ${offset}, orderBy: ${literal}) { ${g} }`, there.name,
      `(select coalesce(json_agg(${s} order by ${order(inner)}), '[]') from (${rows}) ${inner})`,
    );
  }
  return [fields.join(" "), `json_build_object(${pairs.join(", ")})`];
};
const run = async (query, given, label) => {
  const declared = given.map(([name, , type = "JSON"]) => `$${name}: ${type}`).join(", ");
  const document = `query${declared ? `(${declared})` : ""} { ${query} }`;
  const values = Object.fromEntries(given);
  const answer = await ask(schemaName, document, values);
  assert.equal(answer.errors, undefined, `${label} ${document} ${JSON.stringify(values)} ${JSON.stringify(answer.errors)}`);
  return [answer, `${label} ${document} ${JSON.stringify(values)}`];
};

// A list as a root field.
const list = (t, key) => {
  const [g, s] = select(t, 3, key);
  const [w, sw] = condition(t, key);
  const [limit, offset] = [1 + random(20), random(10)];
  const [literal, order] = ordering(t);
  const name = `w${variables.length}`;
  variables.push([name, w]);
  const query = `${key}: get${pascal(t.name)}(where: $${name}, limit: ${limit}, offset: ${offset}, orderBy: ${literal}) { ${g} }`;
  const rows = `select * from ${t.from} ${key} where ${sw} order by ${order(key)} limit ${limit} offset ${offset}`;
  return [query, `(select coalesce(json_agg(${s} order by ${order(key)}), '[]') from (${rows}) ${key})`];
};

// Aggregates as a root field, grouped by some columns or by none.
const numbers = new Set(["int2", "int4", "int8", "numeric", "float8"]);
const functionForm = (t, c, name) => {
  const value = `${name}(x.${q(c.name)})`;
  if (c._typname === "float8") return value;
  const exact = ["sum", "avg"].includes(name) || t.key.includes(c.name) || ["int8", "numeric"].includes(c._typname);
  return exact ? `${value}::text` : value;
};
const aggregate = async (t) => {
  const [w, sw] = condition(t, "x");
  // The sum of floats depends on the order of the rows, which is undefined.
  const takes = {
    sum: (c) => numbers.has(c._typname) && c._typname !== "float8", avg: (c) => numbers.has(c._typname) && c._typname !== "float8",
    min: (c) => !["bool", "uuid"].includes(c._typname), max: (c) => !["bool", "uuid"].includes(c._typname),
  };
  const by = random(3) ? some(t.columns, 2).filter((c) => !["count", "sum", "avg", "min", "max"].includes(c.name)) : [];
  const fields = ["count"], pairs = ["'count', count(*)"];
  for (const [name, can] of Object.entries(takes)) {
    const columns = t.columns.filter(can);
    if (!columns.length || !random(2)) continue;
    const chosen = some(columns, 3);
    fields.push(`${name} { ${chosen.map((c) => c.name).join(" ")} }`);
    pairs.push(`'${name}', json_build_object(${chosen.map((c) => `'${c.name}', ${functionForm(t, c, name)}`).join(", ")})`);
  }
  for (const c of by) { fields.push(c.name); pairs.push(`'${c.name}', ${form(t, c, "x")}`); }
  const query = `r: get${pascal(t.name)}Aggregate(where: $w, groupBy: $by) { ${fields.join(" ")} }`;
  const [answer, label] = await run(query, [["w", w], ["by", by.map((c) => c.name), "[String!]"]], "aggregate");
  const group = by.length ? ` group by ${by.map((c) => `x.${q(c.name)}`).join(", ")}` : "";
  const [rows] = await sql(`select json_build_object(${pairs.join(", ")}) as row from ${t.from} x where ${sw}${group}`);
  const sorted = (groups) => groups.map((one) => JSON.stringify(one)).sort();
  assert.equal(answer.extensions, undefined, label);
  assert.deepEqual(sorted(answer.data.r), sorted(rows.data.map(({ row }) => row)), label);
  return rows.data.length;
};

let seen = 0, groups = 0;
for (let n = 0; n < count; n += 1) {
  variables.length = 0;
  aliases = 0;
  const keys = random(3) ? ["r0"] : ["r0", "r1", "r2"];
  const roots = keys.map((key) => [key, ...list(pick(tables), key)]);
  const [answer, label] = await run(roots.map(([, query]) => query).join(" "), variables, `${schemaName} ${n}:`);
  const [rows] = await sql(`select json_build_object(${roots.map(([key, , words]) => `'${key}', ${words}`).join(", ")}) as row`);
  assert.equal(JSON.stringify(answer.data), JSON.stringify(rows.data[0].row), label);
  seen += Object.values(answer.data).reduce((sum, one) => sum + one.length, 0);
  groups += await aggregate(pick(tables));
}
console.log(`${count} random documents over ${schemaName}: ${seen} rows at the top, ${groups} groups`);
assert.ok(seen > count && groups > count / 2, "too little was compared");
