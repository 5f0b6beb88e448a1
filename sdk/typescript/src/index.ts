/** Client of the millwright API: runs of agents, factories, webhooks, secrets and definition files. */

export { type EndpointOptions, Millwright, Millwright as default } from "./client.js";
export type { EventsOptions } from "./core/caller.js";
export {
  APIConnectionError,
  APIError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  MillwrightError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  RunWaitTimeoutError,
  UnprocessableEntityError,
} from "./core/errors.js";
export { Page, PagePromise } from "./core/page.js";
export { APIPromise } from "./core/promise.js";
export type { RequestOptions } from "./core/request.js";
export { APIResponse } from "./core/response.js";
export type { ClientOptions, Fetch } from "./core/settings.js";
export type { ServerSentEvent } from "./core/sse.js";
export { EventStream } from "./core/stream.js";
export type * from "./generated/types.js";
export type { operations } from "./generated/openapi.js";
export { RunsPage, type WaitOptions } from "./resources/agent.js";
export { AutomationsPage, FactoriesPage, SyncsPage } from "./resources/factories.js";
export { FilesPage, RevisionsPage } from "./resources/files.js";
export { KeysPage } from "./resources/keys.js";
export type { DeliveryEvent, RunEvent } from "./resources/events.js";
export { ENDED_STATES } from "./resources/run.js";
export { EventsPage, NotificationsPage } from "./resources/notifications.js";
export { SecretsPage } from "./resources/secrets.js";
export { DeliveriesPage, WebhooksPage } from "./resources/webhooks.js";
export { AuditPage } from "./resources/audit.js";
export { WorkersPage } from "./resources/workers.js";
export {
  type DeliveryReceipt,
  type SendOptions,
  sign,
  type SignatureHeaders,
  type SignOptions,
  WebhookSender,
  type WebhookSenderOptions,
} from "./sender.js";
export { VERSION } from "./version.js";
export { type ReceivedHeaders, type VerifyOptions, WebhookVerificationError, webhooks } from "./webhooks.js";
