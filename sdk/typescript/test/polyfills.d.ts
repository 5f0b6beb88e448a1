// Types of the polyfills that have none.
declare module "node-fetch" {
  const fetch: unknown;
  export default fetch;
}
declare module "xhr2" {
  const XMLHttpRequest: unknown;
  export default XMLHttpRequest;
}
declare module "whatwg-fetch" {
  const { fetch, Response }: { fetch: typeof globalThis.fetch; Response: typeof globalThis.Response };
  export { fetch, Response };
}
