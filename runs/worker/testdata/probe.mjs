// A server of the Model Context Protocol on standard input and output, with one tool. The tool notes its
// results in a file of the working directory.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

function measure(text) {
  const depth = `depth of ${text}: ${process.env.PROBE}`;
  appendFileSync('depths.txt', depth + '\n');
  return `${depth}, written in ${process.cwd()}`;
}

const answers = {
  initialize: (p) => ({
    protocolVersion: p.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'probe', version: '1.0.0' },
  }),
  'tools/list': () => ({
    tools: [{
      name: 'measure_depth',
      description: 'Measures a depth.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    }],
  }),
  'tools/call': (p) => ({ content: [{ type: 'text', text: measure(p.arguments.text) }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const body = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: 'no such method' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\n');
}
