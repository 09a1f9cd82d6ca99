// GraphiQL's way to the server: HTTP for queries and mutations, graphql-transport-ws for subscriptions.
import { getOperationAST, parse } from "graphql";
import { createClient } from "graphql-ws";

const TYPES = "application/graphql-response+json, application/json;q=0.9";

/** A fetcher for the schema at `path`, as the caller of `session`. */
export function createFetcher(path, session) {
  return (request, options = {}) => {
    const { headers = {} } = options;
    return isSubscription(request)
      ? subscribe(path, session, request, headers)
      : ask(path, session, request, headers);
  };
}

function isSubscription({ query, operationName }) {
  try {
    return getOperationAST(parse(query), operationName)?.operation === "subscription";
  } catch {
    // The server says better what is wrong with it.
    return false;
  }
}

async function ask(path, session, request, headers) {
  const token = await session.fresh();
  const answer = await fetch(path, {
    method: "POST",
    credentials: "omit",
    headers: {
      "Content-Type": "application/json",
      Accept: TYPES,
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(session.database && { "Tidegate-Database": session.database }),
      ...headers,
    },
    body: JSON.stringify(request),
  });
  // An error before GraphQL is reached has the shape of a GraphQL answer too.
  return answer.json();
}

/** The events of a subscription, on a socket that ends with it: the client is lazy. */
function subscribe(path, session, request, headers) {
  const client = createClient({
    url: new URL(path, location.href).href.replace(/^http/, "ws"),
    retryAttempts: 0,
    connectionParams: async () => {
      const token = await session.fresh();
      return { ...(token && { Authorization: `Bearer ${token}` }), ...headers };
    },
  });
  return client.iterate(request);
}
