const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** A random text of 256 bits, for `state` and the code verifier (RFC 7636, section 4.1). */
export const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** The S256 challenge of a verifier (RFC 7636, section 4.2). */
export async function challengeOf(verifier: string): Promise<string> {
  // Browsers provide `crypto.subtle` only in secure contexts: HTTPS, or localhost.
  if (!crypto.subtle) throw new Error("A browser signs in only at an address with https://, or at http://localhost. Open the console there.");
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

/** The claims of an access token. The server has checked it; here it is only read. */
export function claimsOf(token: string): Claims {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes)) as Claims;
}

export type Claims = {
  sub: string;
  database: string;
  exp: number;
  superUser?: boolean;
  /** A member has no role of its own, and may not run SQL. */
  kind?: "member";
};
