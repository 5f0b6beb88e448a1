// Writes src/generated from the API's document. With --check, fails when that changes anything.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { parse } from "yaml";

const root = new URL("..", import.meta.url);
const source = new URL("../../api/openapi.yaml", root);
const target = new URL("src/generated/", root);

const { factory } = ts;
const string = () => factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword);

/** Calls f with every object of a part of the document, but for maps whose keys are names. */
function walk(node, f, named = false) {
  if (Array.isArray(node)) return node.forEach((n) => walk(n, f));
  if (node === null || typeof node !== "object") return;
  if (!named) f(node);
  for (const [key, value] of Object.entries(node)) {
    if (named || !key.startsWith("x-")) walk(value, f, !named && (key === "properties" || key === "schemas"));
  }
}

/** The names of the components that a part of the document refers to, directly or not. */
function reachable(document, part, found = new Set()) {
  walk(part, ({ $ref }) => {
    const name = typeof $ref === "string" ? $ref.split("/").at(-1) : undefined;
    if (name !== undefined && !found.has(name)) {
      found.add(name);
      reachable(document, document.components.schemas[name], found);
    }
  });
  return found;
}

function prepare(document) {
  const schemas = document.components.schemas;
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  // A component that is any string, with examples: those are its values so far.
  for (const schema of Object.values(schemas))
    if (schema.type === "string" && schema.examples?.length > 1) schema["x-known"] = schema.examples;
  for (const p of operations.flatMap((op) => op.parameters ?? [])) {
    const items = p.schema?.items;
    if (p.in === "query" && items)
      p.schema = { anyOf: [p.schema.items, { ...p.schema, type: "array" }], description: p.description };
    if (p.in === "query") walk(p.schema, (s) => (s["x-input"] = true));
  }
  // Deprecated paths have newer ones; errors are raised as classes of their own.
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, op] of Object.entries(item)) {
      if (op.deprecated) delete item[method];
      else {
        for (const status of Object.keys(op.responses))
          if (!status.startsWith("2")) delete op.responses[status];
        const content = op.requestBody?.content;
        if (content?.["application/json"])
          op.requestBody.content = { "application/json": content["application/json"] };
      }
    }
    if (Object.keys(item).length === 0) delete document.paths[path];
  }
  const answered = reachable(
    document,
    operations.map((op) => op.responses),
  );
  for (const name of reachable(
    document,
    operations.map((op) => op.requestBody),
  )) {
    if (!answered.has(name)) walk(schemas[name], (s) => (s["x-input"] = true));
  }
  walk(document, (s) => {
    if (s.additionalProperties === true) delete s.additionalProperties;
    if (s.type === "string" && s.enum) {
      s["x-known"] = s.enum; // a later server may have more
      delete s.enum;
    }
    delete s.default; // what a server takes when a field is absent does not make the field present
  });
  return document;
}

function transform(schema) {
  if (schema["x-known"]) {
    const known = schema["x-known"].map((v) => factory.createLiteralTypeNode(factory.createStringLiteral(v)));
    const any = factory.createIntersectionTypeNode([string(), factory.createTypeLiteralNode([])]);
    return factory.createUnionTypeNode([...known, any]);
  }
  if (schema.type === "string" && schema["x-input"]) {
    const more =
      schema.format === "date-time"
        ? "Date"
        : schema.description?.includes("base64")
          ? "Uint8Array"
          : undefined;
    if (more) return factory.createUnionTypeNode([string(), factory.createTypeReferenceNode(more)]);
  }
  return undefined;
}

const document = prepare(parse(readFileSync(source, "utf8")));
const head = "// Made by scripts/generate.mjs from api/openapi.yaml: do not edit.\n\n";
const names = Object.keys(document.components.schemas).sort();
const about = (name) => {
  const { description } = document.components.schemas[name];
  return description ? `/** ${description.replaceAll("*/", "* /")} */\n` : "";
};
const files = {
  "openapi.ts": head + astToString(await openapiTS(document, { transform, silent: true })),
  "types.ts":
    head +
    'import type { components } from "./openapi.js";\n\n' +
    names.map((n) => `${about(n)}export type ${n} = components["schemas"]["${n}"];\n`).join(""),
};
let stale = false;
for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, target);
  if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
  stale = true;
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
    console.log(`wrote src/generated/${name}`);
  }
}
if (stale && process.argv.includes("--check")) {
  console.error("src/generated does not say what api/openapi.yaml says: run npm run generate");
  process.exit(1);
}
