// What the official TypeScript client gets of a tool that is run as a task, as JSON on standard output.
// Arguments: the name of the tool, then the URL of a server, or the command of one on stdin and stdout.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [name, ...place] = process.argv.slice(2);
const transport = place[0].startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(place[0]))
  : new StdioClientTransport({ command: place[0], args: place.slice(1), stderr: 'ignore' });

const client = new Client(
  { name: 'typescript-tasks', version: '1.0.0' },
  { capabilities: { elicitation: {} } },
);
const related = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  related.push(request.params._meta?.['io.modelcontextprotocol/related-task']?.taskId);
  return { action: 'accept', content: { interpretation: 'snake' } };
});

await client.connect(transport);
const listed = (await client.listTools()).tools.find((tool) => tool.name === name);
const tasks = client.experimental.tasks;
const seen = [];
const call = { name, arguments: { topic: 'python', ambiguous: true } };
for await (const message of tasks.callToolStream(call, CallToolResultSchema)) {
  seen.push(message.error ? { type: 'error', said: message.error.message } : message);
}
const made = seen.find((each) => each.type === 'taskCreated')?.task.taskId;
const refused = (asking) => asking.catch((error) => ({ code: error.code, message: error.message }));
const did = {
  execution: listed?.execution,
  capabilities: client.getServerCapabilities().tasks,
  seen,
  related,
  listed: (await tasks.listTasks()).tasks.map((task) => [task.taskId, task.status]),
  again: made ? await tasks.getTask(made) : null,
  plain: await refused(client.callTool(call)),
  unknown: await refused(tasks.getTask('nobody')),
};
if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(did));
