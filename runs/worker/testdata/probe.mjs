// A server of the Model Context Protocol on standard input and output, with one tool.
import { createInterface } from 'node:readline';

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
  'tools/call': (p) => ({ content: [{ type: 'text', text: `depth of ${p.arguments.text}: ${process.env.PROBE}` }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const body = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: 'no such method' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\n');
}
