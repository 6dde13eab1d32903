// A client whose token is dead connects, is told so, and recovers its account with the same client.
// Arguments: the URL of `/mcp`, and how version 2 of the official SDK is to negotiate.

const [url, kind] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
const mode = { 'v2-stateless': { pin: '2026-07-28' }, 'v2-auto': 'auto' }[kind];

const connected = async (token) => {
  const address = new URL(url);
  if (token) address.searchParams.set('token', token);
  const client = new Client({ name: 'typescript-test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(address));
  return client;
};
const call = async (client, name, args = {}) =>
  JSON.parse((await client.callTool({ name, arguments: args })).content[0].text);

const stranger = await connected();
const made = await call(stranger, 'msg_register', { handle: 'alice' });
const recovery = { handle: 'alice', recovery_code: made.recovery_code };
await call(stranger, 'msg_recover', recovery);

const dead = await connected(made.token);
const error = await call(dead, 'msg_inbox').then(JSON.stringify, (failed) => `${failed.message}`);
const tools = (await dead.listTools()).tools.map((tool) => tool.name);
const resources = (await dead.listResources()).resources.length;
const prompts = (await dead.listPrompts()).prompts.length;
const again = await call(dead, 'msg_recover', recovery);
const fresh = await connected(again.token);

console.log(JSON.stringify({
  instructions: dead.getInstructions(),
  error,
  tools,
  lists: [resources, prompts],
  strangers: [(await stranger.listResources()).resources.length, (await stranger.listPrompts()).prompts.length],
  handle: (await call(fresh, 'msg_whoami')).handle,
}));
for (const client of [stranger, dead, fresh]) await client.close();
