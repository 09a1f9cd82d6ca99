import { signal } from "@preact/signals";
import { ApiError, errorOfBody, isAbort } from "./errors.ts";
import { home } from "./home.ts";
import { parseExact } from "./json.ts";
import { accessToken, actor, renew, session, sessionEnded } from "./session.ts";

/** Whether the last request reached the server. */
export const online = signal(true);

export type Options = {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

async function send(path: string, options: Options): Promise<Response> {
  const token = accessToken();
  const headers: Record<string, string> = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const answer = await fetch(home + path, {
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
      // A redirect after a change leads to the changed object, which is not needed here.
      redirect: options.method === "PATCH" ? "manual" : "follow",
      cache: "no-store",
    });
    online.value = true;
    return answer;
  } catch (error) {
    if (isAbort(error)) throw error;
    online.value = false;
    throw new ApiError(0, "UNREACHABLE", "The server cannot be reached. Nothing that you typed is lost; try again.");
  }
}

/** Sends a request as the current user; a token that has expired is renewed once. */
export async function request(path: string, options: Options = {}): Promise<Response> {
  let answer = await send(path, options);
  if (answer.status === 401 && actor.value) {
    // The token of the user who is viewed as has 15 minutes and cannot be renewed.
    actor.value = null;
    throw new ApiError(401, "INVALID_TOKEN", "Viewing as another user has ended. You are yourself again.");
  }
  if (answer.status === 401 && session.value) {
    if (await renew()) {
      answer = await send(path, options);
      if (answer.status === 401) sessionEnded.value = true;
    } else if (!sessionEnded.value) {
      throw new ApiError(0, "UNREACHABLE", "The server cannot renew your sign-in just now. Nothing that you typed is lost; try again.");
    }
  }
  if (answer.type === "opaqueredirect" || answer.ok) return answer;
  throw errorOfBody(answer.status, await readBody(answer));
}

async function readBody(answer: Response): Promise<unknown> {
  const text = await answer.text();
  try {
    return parseExact(text);
  } catch {
    return { message: text.slice(0, 300) || `The server answered with status ${answer.status}.` };
  }
}

/** Sends a request and reads the JSON answer; numbers keep their digits. */
export async function requestJson<T>(path: string, options: Options = {}): Promise<T> {
  return (await readBody(await request(path, options))) as T;
}
