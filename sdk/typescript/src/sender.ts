import { isRecord, MillwrightError } from "./core/errors.js";
import { APIPromise } from "./core/promise.js";
import { base64, encodeJSON, userAgent, uuid } from "./core/request.js";
import { object } from "./core/response.js";
import { DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT } from "./core/retry.js";
import { checkedRetries, checkedTimeout, type Fetch, parseURL, resolveFetch } from "./core/settings.js";
import { send } from "./core/transport.js";

/** What is signed besides the body. */
export interface SignOptions {
  /** The webhook's signing secret: `whsec_` and base64. */
  secret: string;
  /** Names the event: a receiver takes a second delivery of the same ID for a repeat. */
  deliveryId: string;
  /** Seconds since 1970, now by default; receivers refuse what is more than five minutes off. */
  timestamp?: number | undefined;
}

/** The headers of a signed delivery. */
export interface SignatureHeaders extends Record<string, string> {
  "webhook-id": string;
  "webhook-timestamp": string;
  "webhook-signature": string;
}

/** Returns the headers that sign a delivery as Standard Webhooks 1.0 says. The body must be sent byte for byte. */
export async function sign(body: string | Uint8Array, options: SignOptions): Promise<SignatureHeaders> {
  const { deliveryId, timestamp = Math.floor(Date.now() / 1000) } = options;
  if (checkedId(deliveryId).includes(".")) {
    throw new MillwrightError("a delivery ID that is signed has no dots: a dot ends it in what is signed");
  }
  const encoder = new TextEncoder();
  const head = encoder.encode(`${deliveryId}.${timestamp}.`);
  const tail = typeof body === "string" ? encoder.encode(body) : body;
  const signed = new Uint8Array(head.length + tail.length);
  signed.set(head);
  signed.set(tail, head.length);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", signingKey(options.secret), algorithm, false, ["sign"]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return {
    "webhook-id": deliveryId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${base64(signature)}`,
  };
}

function signingKey(secret: string): Uint8Array<ArrayBuffer> {
  let key = new Uint8Array();
  try {
    key = Uint8Array.from(atob(secret.trim().replace(/^whsec_/, "")), (c) => c.charCodeAt(0));
  } catch {
    // said below, without showing it
  }
  if (key.length < 24 || key.length > 64) {
    throw new MillwrightError("the signing secret is not whsec_ and the base64 form of 24 to 64 bytes");
  }
  return key;
}

function checkedId(deliveryId: string): string {
  if (!/^[!-~]+$/.test(deliveryId))
    throw new MillwrightError("a delivery ID is printable ASCII without spaces");
  return deliveryId;
}

/** Where and how to send deliveries. */
export interface WebhookSenderOptions {
  /** The webhook's secret, when it verifies Standard Webhooks signatures. */
  signingSecret?: string | undefined;
  /** The webhook's secret, when it takes a bearer token. */
  token?: string | undefined;
  /** Milliseconds for one attempt; 60,000 by default. */
  timeout?: number | undefined;
  /** How often a delivery is tried again; 2 by default. */
  maxRetries?: number | undefined;
  /** A `fetch` of your own. */
  fetch?: Fetch | undefined;
}

/** Options of one delivery; they win over those of the sender. */
export interface SendOptions {
  /** The sender's own name of the event, made up when absent: a second one of the same name starts nothing. */
  deliveryId?: string | undefined;
  /** Headers to send besides. */
  headers?: Record<string, string> | undefined;
  timeout?: number | undefined;
  maxRetries?: number | undefined;
  signal?: AbortSignal | null | undefined;
}

/** What the server said of an accepted delivery. */
export interface DeliveryReceipt {
  /** The server's name of the delivery; of a duplicate, that of the first. */
  delivery_id: string;
  /** Whether a delivery of the same identity had been accepted before, so that nothing started. */
  duplicate?: boolean;
}

const TOKEN = /(\/webhooks\/w\/[^/]+\/)([^/?#]+.*)/;

/**
 * Sends deliveries to one webhook. Give what it authenticates senders by: `signingSecret`, `token`, or
 * nothing for a URL that has its token in it. A retry sends the same bytes under the same delivery ID, so
 * that it never starts a second run.
 */
export class WebhookSender {
  readonly #url: string;
  readonly #where: string;
  readonly #options: WebhookSenderOptions;
  readonly #fetch: Fetch;
  readonly #secrets: string[];

  constructor(url: string, options: WebhookSenderOptions = {}) {
    const { signingSecret, token } = options;
    if (signingSecret !== undefined && token !== undefined) {
      throw new MillwrightError(
        "give signingSecret or token, not both: a webhook has one way of authentication",
      );
    }
    if (signingSecret !== undefined) signingKey(signingSecret);
    if (token !== undefined && !/^[ -~]+$/.test(token))
      throw new MillwrightError("the token must be visible ASCII");
    const parsed = parseURL(url.trim());
    const hint = "give the ingress URL of a webhook, such as https://hooks.example.com/webhooks/w/wh_…";
    if (parsed === undefined || parsed.username !== "" || parsed.password !== "") {
      throw new MillwrightError(
        `the webhook's URL is not an http or https URL without credentials before the host: ${hint}`,
      );
    }
    if (/\{token\}|%7Btoken%7D/i.test(url)) {
      throw new MillwrightError("the webhook's URL has {token} in it: put the webhook's secret there");
    }
    this.#url = parsed.href;
    this.#where = `POST ${parsed.origin}${parsed.pathname.replace(TOKEN, "$1***")}`;
    this.#options = options;
    this.#fetch = resolveFetch(options.fetch);
    const urlToken = TOKEN.exec(parsed.pathname)?.[2];
    this.#secrets = [signingSecret, token, urlToken].filter((s) => s !== undefined && s !== "") as string[];
  }

  /**
   * Sends one delivery and returns what the server says of it. A `Uint8Array` is sent as it is, and must be
   * JSON; anything else is sent as JSON.
   */
  send(payload: unknown, options: SendOptions = {}): APIPromise<DeliveryReceipt> {
    const response = (async () => {
      const { signingSecret: secret, token } = this.#options;
      const body = payload instanceof Uint8Array ? payload : encodeJSON(payload);
      const deliveryId = checkedId(options.deliveryId ?? `msg_${uuid().replaceAll("-", "")}`);
      const headers: Record<string, string> = {
        "content-type": "application/json",
        accept: "application/json",
        ...userAgent(),
      };
      if (secret === undefined) headers["x-service-delivery-id"] = deliveryId;
      if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
      return send(this.#fetch, {
        method: "POST",
        url: this.#url,
        where: this.#where,
        headers: { ...headers, ...options.headers },
        content: body,
        timeout: checkedTimeout(options.timeout ?? this.#options.timeout ?? DEFAULT_TIMEOUT),
        maxRetries: checkedRetries(options.maxRetries ?? this.#options.maxRetries ?? DEFAULT_MAX_RETRIES),
        signal: options.signal,
        secrets: this.#secrets,
        sign: secret === undefined ? undefined : () => sign(body, { secret, deliveryId }),
      });
    })();
    return new APIPromise(response, (answer) => {
      const receipt = object<DeliveryReceipt>(answer);
      if (!isRecord(receipt) || typeof receipt.delivery_id !== "string")
        throw answer.nonsense("it has no delivery_id");
      return receipt;
    });
  }
}
