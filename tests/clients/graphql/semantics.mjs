// Our answers beside those of graphql-js: which documents are valid, and what a selection means.
import assert from "node:assert/strict";
import { buildSchema, execute, parse, validate } from "graphql";
import { ask, authorization, endpoint, sql } from "./service.mjs";

const text = await (await fetch(`${endpoint("public")}/sdl`, { headers: { Authorization: authorization } })).text();
const schema = buildSchema(text);
// Literals of a custom scalar may be anything; graphql-js has no opinion on words in them.
const judged = (document) => {
  try {
    return validate(schema, parse(document)).length === 0;
  } catch {
    return false;
  }
};

const documents = [
  "{ getArtists { id name } }",
  "query A($w: JSON, $n: String = \"x\", $l: Int) { getArtists(where: $w, limit: $l) { id ...f } b: getArtists(where: {name: $n, or: [{id: {in: [1, 2.5, -3e2]}}]}) { id } } fragment f on Artists { name albums(limit: 2) { title tags } }",
  "query B($yes: Boolean!, $no: Boolean = false) { getAlbums(limit: 1) { id @include(if: $yes) title @skip(if: $no) ... on Albums @include(if: $no) { price } artists { id } } }",
  "mutation C($d: JSON, $o: [JSON!], $i: ID!) { insertPlaylists(data: $d) { id } x: insertPlaylists(objects: $o) { id } updatePlaylists(id: $i, data: {name: \"n\"}) { id } deletePlaylists(id: $i, where: {name: {like: \"x%\"}}) { id } }",
  "{ __schema { types { name fields { name args { name type { name } } } } } __type(name: \"Artists\") { kind ofType { name } } __typename }",
  "{ getConcerts { during { lower upper lowerInclusive } ages { lower } } getVenues { location { x y } area { points { x } } } }",
  "query D { getAlbumsAggregate(groupBy: [\"artist_id\"]) { count artist_id sum { price } } } query E { __typename }",
  "{ a: getArtists(id: 1) { ...f ...f } } fragment f on Artists { id ...g } fragment g on Artists { name }",
];

// Changes a document at random: a token is dropped, doubled, exchanged or taken from another one.
let seed = 20261121;
const random = (below) => {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % below;
};
const tokens = (document) => document.match(/\.\.\.|[_A-Za-z]\w*|-?\d+(?:\.\d+)?(?:e\d+)?|"[^"]*"|[^\s]/g);
const every = documents.map(tokens);
const isName = (token) => /^\w+$/.test(token);
const changed = () => {
  const list = [...every[random(every.length)]];
  for (let times = random(2); times >= 0; times -= 1) {
    const at = random(list.length);
    const other = every[random(every.length)];
    const from = random(other.length);
    const alike = list.filter((token) => isName(token) === isName(list[at]));
    switch (random(6)) {
      case 0: list.splice(at, 1); break;
      case 1: list.splice(at, 0, list[at]); break;
      case 2: list[at] = other[from]; break;
      case 3: list.splice(at, 0, other[from]); break;
      default: list[at] = alike[random(alike.length)];
    }
  }
  return list.join(" ");
};

const cases = [...documents, ...Array.from({ length: 5000 }, changed)];
const valid = new Set();
const differing = [];
for (let from = 0; from < cases.length; from += 50) {
  const some = cases.slice(from, from + 50);
  // An operation that is not there lets a document be read and checked, and not run.
  const body = some.map((query) => ({ query, operationName: "NoSuchOperation" }));
  const answer = await fetch(endpoint("public"), {
    method: "POST", headers: { "Content-Type": "application/json", Authorization: authorization },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200);
  (await answer.json()).forEach(({ errors }, at) => {
    const code = errors[0].extensions.code;
    const ours = code === "BAD_USER_INPUT";
    const theirs = judged(some[at]);
    if (theirs) valid.add(some[at]);
    if (ours !== theirs && code !== "TOO_COMPLEX") differing.push([theirs, errors[0].message, some[at]]);
  });
}
for (const [theirs, message, document] of differing) {
  console.error(theirs ? "we refuse" : "we accept", message, "\n  ", document);
}
assert.ok(valid.size > 150, `${valid.size} valid documents`);
assert.equal(differing.length, 0, `${differing.length} of ${cases.length} documents`);

// The same rows through graphql-js's executor.
const rows = async (query) => (await sql(query))[0].data;
const artists = await rows("select id::text, name, country, formed from artists where artists.id <= 5 order by artists.id");
const albums = await rows("select id::text, title, artist_id from albums where artist_id <= 5 order by albums.id");
for (const artist of artists) artist.albums = albums.filter((album) => String(album.artist_id) === artist.id);
for (const album of albums) album.artists = artists.find((artist) => artist.id === String(album.artist_id));
const selections = [
  ["id name"],
  ["a: id b: id name id __typename t: __typename"],
  ["...f id ...f", "fragment f on Artists { name x: id albums { id ...g } } fragment g on Albums { title artists { name } }"],
  ["albums { id } albums { title } x: albums { artists { id } artists { name albums { id } } }"],
  ["id @skip(if: true) name @include(if: false) formed @skip(if: false) @include(if: true)"],
  ["... @include(if: $yes) { id } ... on Artists @skip(if: $yes) { name } ...f @include(if: $yes) country", "fragment f on Artists { formed ...g @skip(if: $no) } fragment g on Artists { albums { title @include(if: $no) id } }"],
  ["b: name a: name c: country ... { a: name d: id }"],
];
// Lists without an order of their own come as PostgreSQL finds them.
const ordered = (text) => text.replaceAll("albums {", 'albums(orderBy: {id: "asc"}) {');
for (const [selection, fragments = ""] of selections.map((texts) => texts.map(ordered))) {
  const used = /\$/.test(selection + fragments);
  const definition = used ? "query ($yes: Boolean!, $no: Boolean = false) " : "";
  const list = (call) => `${definition}{ list: ${call} { ${selection} } } ${fragments}`;
  const variables = { yes: true };
  const expected = execute({
    schema, document: parse(list("getArtists")), rootValue: { getArtists: artists }, variableValues: variables,
  });
  const ours = await ask("public", list("getArtists(where: {id: {lte: 5}}, orderBy: {id: \"asc\"})"), variables);
  assert.deepEqual(ours.errors, undefined);
  // The order of members too.
  assert.equal(JSON.stringify(ours.data), JSON.stringify(expected.data), selection);
}
console.log(`graphql-js agrees on ${cases.length} documents`);
