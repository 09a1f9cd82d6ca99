// What graphql-js makes of the schemas: of the demo, and of one in which every name is odd.
import assert from "node:assert/strict";
import {
  buildClientSchema, buildSchema, getIntrospectionQuery, isListType, isLeafType, getNamedType,
  isObjectType, lexicographicSortSchema, printSchema, validate, parse, validateSchema,
} from "graphql";
import { ask, authorization, endpoint, sql } from "./service.mjs";

const introspect = async (schema) => {
  const query = getIntrospectionQuery({
    descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true,
    schemaDescription: true, inputValueDeprecation: true, oneOf: true,
  });
  const { data, errors } = await ask(schema, query);
  assert.equal(errors, undefined);
  const built = buildClientSchema(data);
  assert.deepEqual(validateSchema(built), []);
  return built;
};

// Both ways to learn a schema tell the same.
const sdl = async (schema) => {
  const answer = await fetch(`${endpoint(schema)}/sdl`, { headers: { Authorization: authorization } });
  assert.equal(answer.status, 200);
  return buildSchema(await answer.text());
};
const printed = (schema) => printSchema(lexicographicSortSchema(schema));

// Every scalar of a type, and of the objects of its relationships one level down.
const everything = (type, depth) => {
  const fields = Object.values(type.getFields()).map((field) => {
    const inner = getNamedType(field.type);
    if (isLeafType(inner)) return field.name;
    const table = inner.name in tables || depth < 2;
    if (!table || depth === 0) return "";
    return `${field.name} { __typename ${everything(inner, depth - 1)} }`;
  });
  return fields.join(" ");
};
let tables = {};

const readEverything = async (schema, built) => {
  const root = built.getQueryType().getFields();
  for (const field of Object.values(root)) {
    const type = getNamedType(field.type);
    if (!isObjectType(type) || field.args.length === 0) continue;
    // Aggregates have no limit; the name does not tell, because a table may have taken it.
    if (!isListType(field.type) || !field.args.some(({ name }) => name === "limit")) continue;
    // The widest tables have more columns than a request may ask for.
    const columns = Object.keys(type.getFields()).length;
    const selection = columns > 900 ? Object.keys(type.getFields()).slice(0, 900).join(" ") : everything(type, 2);
    const query = `{ ${field.name}(limit: 2) { __typename ${selection} } }`;
    assert.deepEqual(validate(built, parse(query)), [], query);
    const answer = await ask(schema, query);
    assert.equal(answer.errors, undefined, `${query}: ${JSON.stringify(answer.errors)}`);
    assert.ok(Array.isArray(answer.data[field.name]));
  }
};

const statements = [
  `create schema torture`,
  `create type torture.mood as enum ('sad', 'a "quoted" label')`,
  `create table torture.nothing ()`,
  `create table torture.no_key (a int, b text)`,
  `create table torture."select" ("from" int primary key, "where" text, "order" text, "limit" text, id text)`,
  `create table torture.query (id int primary key, "__typename" text, "__x" int, mutation int, "query" text)`,
  `create table torture."Query" (id int primary key)`,
  `create table torture.date (id int primary key, date date)`,
  `create table torture."MyTable" (id int primary key)`,
  `create table torture.my_table (id int primary key, parent int references torture.my_table, "My_Table" int references torture."MyTable")`,
  `create table torture."1st place" ("1st" int primary key, "two words" int, "two_words" int, "größe" text, "a""b" int)`,
  `create table torture."表" ("列" int primary key, "行" int)`,
  `create table torture."題" (id int primary key)`,
  `create table torture."it's ""quoted""; --" (id int primary key, "back\\slash	tab" text)`,
  `create table torture._ (_ int, __ int, ___ int)`,
  `create table torture.nodes (id int primary key, up int references torture.nodes, down int references torture.nodes)`,
  `create table torture.chicken (id int primary key, egg_id int)`,
  `create table torture.egg (id int primary key, chicken_id int not null references torture.chicken)`,
  `alter table torture.chicken add foreign key (egg_id) references torture.egg`,
  `create table torture.trip (a int, b text, c int, primary key (b, a))`,
  `create table torture.stop (id int primary key, t_b text not null, t_a int not null, foreign key (t_b, t_a) references torture.trip (b, a))`,
  `create table torture.mail (id int primary key, sender int references torture.nodes, receiver int references torture.nodes, nodes int, "mailSenderFkey" int, count int, sum int)`,
  `create table torture.artists (id int primary key)`,
  `create table torture.artists_aggregate (id int primary key, count int)`,
  `create table torture.part (id int, at date, primary key (id, at)) partition by range (at)`,
  `create table torture.part_1 partition of torture.part default`,
  `create view torture.seen as select id, up from torture.nodes`,
  `create materialized view torture.kept as select 1 as n`,
  `comment on table torture.nodes is e'Comments with """ quotes,\\n  lines and \\\\ backslashes'`,
  `comment on column torture.nodes.up is e'\\ttab'`,
  `do $$ begin execute 'create table torture.wide (' || (select string_agg(format('c%s int', n), ', ') from generate_series(1, 1600) n) || ')'; end $$`,
  `insert into torture.nodes values (1, null, null), (2, 1, 1)`,
  `insert into torture.mail values (1, 1, 2, 3, 4, 5, 6)`,
  `insert into torture.trip values (1, 'x', 2)`,
  `insert into torture.stop values (1, 'x', 1)`,
  `insert into torture.query values (1, 'type', 2, 3, 'q')`,
  `insert into torture."1st place" values (1, 2, 3, 'x', 5)`,
];

await sql(...statements);
for (const schema of ["public", "torture"]) {
  const built = await introspect(schema);
  tables = Object.fromEntries(Object.keys(built.getTypeMap()).map((name) => [name, true]));
  const fromText = await sdl(schema);
  assert.equal(printed(built), printed(fromText), schema);
  await readEverything(schema, built);
}

// Names stay what they are where they are GraphQL names, and are all there where they are not.
const torture = await introspect("torture");
const fields = (type) => Object.keys(torture.getType(type).getFields());
assert.deepEqual(fields("Select").slice(0, 5), ["from", "where", "order", "limit", "id"]);
assert.equal(fields("T1stPlace").length, 5);
assert.equal(torture.getType("Part1"), undefined);
assert.equal(fields("Wide").length, 1600);
const { data } = await ask("torture", `{ getMail { id nodes sum mailSenderFkey } getMailAggregate { count sum { sum count } } getStop { trip { a b c stop { id } } } }`);
assert.deepEqual(data, {
  getMail: [{ id: "1", nodes: 3, sum: 6, mailSenderFkey: 4 }],
  getMailAggregate: [{ count: 1, sum: { sum: "6", count: "5" } }],
  getStop: [{ trip: { a: "1", b: "x", c: 2, stop: [{ id: "1" }] } }],
});
console.log("introspection and odd names");
