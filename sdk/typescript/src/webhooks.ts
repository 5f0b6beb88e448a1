import { MillwrightError } from "./core/errors.js";
import { signingKey } from "./sender.js";

/** An event is not signed by the secret, or is too old. */
export class WebhookVerificationError extends MillwrightError {}

/** The headers of a request: an object in any case, or `Headers`. */
export type ReceivedHeaders = Headers | Record<string, string | string[] | undefined>;

/** How events are verified. */
export interface VerifyOptions {
  /** Seconds that a timestamp may be away; 300 by default. */
  tolerance?: number | undefined;
  /** Seconds since 1970; the present by default. */
  now?: number | undefined;
}

const MAX_SIGNATURES = 10;

/**
 * Returns what an event holds, once its signature by Standard Webhooks 1.0 is found right. The body is raw, byte for
 * byte. Throws WebhookVerificationError.
 */
export async function verify(
  body: string | Uint8Array,
  headers: ReceivedHeaders,
  secret: string,
  options: VerifyOptions = {},
): Promise<unknown> {
  const { tolerance = 300, now = Math.floor(Date.now() / 1000) } = options;
  const id = header(headers, "webhook-id");
  const at = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^\d{1,12}$/.test(at)) {
    throw new WebhookVerificationError("the header webhook-timestamp is not a number of seconds since 1970");
  }
  const age = now - Number(at);
  if (Math.abs(age) > tolerance) {
    const side = age > 0 ? "old" : "far in the future";
    throw new WebhookVerificationError(`the timestamp is too ${side}: by ${Math.abs(age)} seconds`);
  }

  const encoder = new TextEncoder();
  const head = encoder.encode(`${id}.${at}.`);
  const tail = typeof body === "string" ? encoder.encode(body) : body;
  const signed = new Uint8Array(head.length + tail.length);
  signed.set(head);
  signed.set(tail, head.length);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", signingKey(secret), algorithm, false, ["verify"]);
  let right = false;
  for (const part of signatures.split(" ").slice(0, MAX_SIGNATURES)) {
    const given = part.startsWith("v1,") ? decoded(part.slice(3)) : undefined;
    // crypto.subtle compares in constant time.
    if (given !== undefined && (await crypto.subtle.verify("HMAC", key, given, signed))) right = true;
  }
  if (!right) throw new WebhookVerificationError("no signature is right for the body and the secret");

  try {
    return JSON.parse(new TextDecoder().decode(tail));
  } catch {
    throw new WebhookVerificationError("the body is not JSON");
  }
}

function header(headers: ReceivedHeaders, name: string): string {
  let value: string | string[] | null | undefined;
  if (headers instanceof Headers) {
    value = headers.get(name);
  } else {
    for (const [key, given] of Object.entries(headers)) if (key.toLowerCase() === name) value = given;
  }
  if (typeof value !== "string" || value === "") {
    throw new WebhookVerificationError(`the header ${name} is missing`);
  }
  return value;
}

function decoded(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** What a receiver of events needs. */
export const webhooks = { verify, WebhookVerificationError } as const;
