// A first GraphQL document, where nothing was written yet.

type TypeOf = { kind: string; name: string | null; ofType?: TypeOf | null };
type Field = { name: string; args: { name: string }[]; type: TypeOf };
type Introspection = { __schema: { queryType: { name: string }; types: { name: string; fields: Field[] | null }[] } };

const MOST_FIELDS = 6;

/** A query of the first table with some of its columns; null without a table. */
export function firstDocument(introspection: unknown): string | null {
  const { queryType, types } = (introspection as Introspection).__schema;
  const fieldsOf = (name: string | null) => types.find((type) => type.name === name)?.fields ?? [];
  for (const field of fieldsOf(queryType.name)) {
    const columns = fieldsOf(named(field.type).name).filter(({ type }) => named(type).kind !== "OBJECT" && !isList(type));
    if (isList(field.type) && columns.length > 0 && field.args.some(({ name }) => name === "limit")) {
      const lines = columns.slice(0, MOST_FIELDS).map(({ name }) => `    ${name}\n`);
      return `{\n  ${field.name}(limit: 10) {\n${lines.join("")}  }\n}`;
    }
  }
  return null;
}

const named = (type: TypeOf): TypeOf => (type.ofType ? named(type.ofType) : type);
const isList = (type: TypeOf): boolean => type.kind === "LIST" || (type.kind === "NON_NULL" && type.ofType != null && isList(type.ofType));
