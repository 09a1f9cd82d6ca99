// The audits of the GraphQL over HTTP specification, by those who wrote its reference server.
import { auditServer } from "graphql-http";

const url = `${process.env.TIDEGATE_URL}/api/graphql/schema/public`;
const results = await auditServer({ url, fetchFn: fetch });
const failed = results.filter((result) => result.status !== "ok");
for (const { id, name, status, reason } of failed) {
  console.error(`${status} ${id} ${name}: ${reason}`);
}
console.log(`${results.length - failed.length} of ${results.length} audits`);
if (results.length < 60 || failed.length > 0) process.exit(1);
