// Which answers are worth another attempt, and when. Times are in milliseconds.

export const DEFAULT_MAX_RETRIES = 2;
export const DEFAULT_TIMEOUT = 60_000;

const FIRST_DELAY = 500;
const LONGEST_DELAY = 8_000;
/** If a server asks for a longer wait, the error is thrown at once. */
const LONGEST_RETRY_AFTER = 60_000;

/** Whether a retry may succeed, by `X-Should-Retry` or the status. */
export function isWorthRetrying(status: number, headers: Headers): boolean {
  const asked = headers.get("x-should-retry")?.trim().toLowerCase();
  if (asked === "true" || asked === "false") return asked === "true";
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Reads `Retry-After`, in seconds or as a date; undefined if absent or invalid. */
export function retryAfter(headers: Headers, now = Date.now()): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(text)) {
    const wait = Number(text) * 1000;
    return Number.isFinite(wait) ? wait : undefined;
  }
  if (!/[a-z]/i.test(text)) return undefined; // some engines take any number for a date
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * Returns how long to wait after the attempt of this number, from 0; undefined to give up.
 * It is at least as long as the server asked for, plus some jitter, so that clients do not return at the same
 * instant.
 */
export function delay(attempt: number, asked?: number): number | undefined {
  if (asked !== undefined)
    return asked <= LONGEST_RETRY_AFTER ? asked * (1 + Math.random() * 0.1) : undefined;
  return Math.min(FIRST_DELAY * 2 ** Math.min(attempt, 16), LONGEST_DELAY) * (0.75 + Math.random() * 0.25);
}

/** Waits, or throws the signal's reason when it is aborted first. */
export async function sleep(wait: number, signal?: AbortSignal | null): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, wait);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}
