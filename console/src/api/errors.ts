/** The error of a failed request: the service's, or the reason why there is no response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message);
  }
}

export type ErrorDetails = {
  sqlstate?: string;
  detail?: string;
  hint?: string;
  /** The position in the statement, in characters from 1. */
  position?: number;
  constraint?: string;
  column?: string;
  table?: string;
};

/** The error in a response in the form of the REST endpoints, of OAuth or of GraphQL. */
export function errorOfBody(status: number, body: unknown): ApiError {
  const members = (body ?? {}) as Record<string, unknown>;
  const first = Array.isArray(members.errors) ? (members.errors[0] as Record<string, unknown>) : undefined;
  const text = members.message ?? members.error_description ?? first?.message ?? members.error;
  const code = members.errorCode ?? members.error ?? "ERROR";
  const message = typeof text === "string" ? text : `The server answered with status ${status}.`;
  return new ApiError(status, String(code), message, members as ErrorDetails);
}

/** Whether a request ended because the page itself stopped it. */
export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === "AbortError";

/** The message to show for any error. */
export function sentence(error: unknown): string {
  if (isAbort(error)) return "Cancelled.";
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const { detail, hint, sqlstate } = error.details;
  if (sqlstate === "42501") return `You do not have the right to do this: ${error.message}.`;
  const parts = [error.message, detail, hint].filter((part): part is string => typeof part === "string" && part !== "");
  return parts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(" ");
}
