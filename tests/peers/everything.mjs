// What the official TypeScript client gets from server-everything, as JSON on standard output.
// Arguments: the URL of a Streamable HTTP server, or the command of one on standard input and output.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

const RESOURCE = 'demo://resource/dynamic/text/1';

const given = process.argv.slice(2);
const transport = given[0].startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(given[0]))
  : new StdioClientTransport({ command: given[0], args: given.slice(1), stderr: 'ignore' });

const capabilities = { sampling: {}, elicitation: {} };
const client = new Client({ name: 'typescript-test', version: '1.0.0' }, { capabilities });
client.setRequestHandler(CreateMessageRequestSchema, async () => ({
  role: 'assistant',
  content: { type: 'text', text: 'The model says ✓' },
  model: 'none',
}));
client.setRequestHandler(ElicitRequestSchema, async () => ({
  action: 'accept',
  content: { name: 'Ada', integer: 7 },
}));
const logged = new Promise((resolve) => {
  client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => resolve(message.params));
});

const call = (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, undefined, options);
const refused = (asking) => asking.catch((error) => ({ code: error.code, message: error.message }));

await client.connect(transport);
const progress = [];
const did = {
  server: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
  tools: await client.listTools(),
  echo: await call('echo', { message: 'Grüße ✓' }),
  structured: await call('get-structured-content', { location: 'Chicago' }),
  long: await call(
    'trigger-long-running-operation',
    { duration: 0.1, steps: 2 },
    { onprogress: (each) => progress.push(each) },
  ),
  // On standard input and output this client may drop a notice that comes together with the answer.
  progress: progress.slice(0, 1),
  sampled: await call('trigger-sampling-request', { prompt: 'Hello', maxTokens: 9 }),
  elicited: await call('trigger-elicitation-request'),
  unknown: await refused(call('no-such-tool')),
  resources: await client.listResources(),
  read: await client.readResource({ uri: RESOURCE }),
  missing: await refused(client.readResource({ uri: 'demo://nothing' })),
  prompt: await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Oslo', state: 'none' } }),
  level: await client.setLoggingLevel('debug'),
  subscribed: await client.subscribeResource({ uri: RESOURCE }),
  logged: await logged,
};
if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(did));
