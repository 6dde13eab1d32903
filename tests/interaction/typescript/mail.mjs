// Two people write to each other through the official TypeScript SDK, and say what they saw as JSON.
// Arguments: the URL of `/mcp`, and the name of one of the clients below.

const INBOX = 'mmp://mailboxes/inbox';
const UPDATED = 'notifications/resources/updated';
const SECONDS = 20;
const WHO = { name: 'typescript-test', version: '1.0.0' };

// Version 1 of the SDK speaks the handshake era alone; version 2 speaks both.
const v1 = async () => {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ResourceUpdatedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return { Client, Transport: StreamableHTTPClientTransport, updated: ResourceUpdatedNotificationSchema };
};
const v2 = (mode) => async () => {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const options = { versionNegotiation: { mode } };
  return { Client, Transport: StreamableHTTPClientTransport, updated: UPDATED, options };
};
const CLIENTS = {
  'v1': v1,
  'v2-handshake': v2('legacy'),
  'v2-stateless': v2({ pin: '2026-07-28' }),
  'v2-auto': v2('auto'),
};

const [url, kind] = process.argv.slice(2);
const { Client, Transport, updated, options } = await CLIENTS[kind]();

const within = (promise, what) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come in ${SECONDS} seconds`)), SECONDS * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

class Person {
  static async come(token) {
    const person = new Person();
    const address = new URL(url);
    if (token) address.searchParams.set('token', token);
    person.client = new Client(WHO, options);
    person.notice = new Promise((resolve) => {
      person.client.setNotificationHandler(updated, (message) => resolve(message.params.uri));
    });
    // What is told before the stream of notices is open is lost, so see it open.
    person.streaming = new Promise((resolve) => { person.sawStream = resolve; });
    const watched = async (target, request) => {
      const answer = await fetch(target, request);
      if ((request?.method ?? 'GET') === 'GET' && answer.ok) person.sawStream();
      return answer;
    };
    person.transport = new Transport(address, { fetch: watched });
    await person.client.connect(person.transport);
    return person;
  }

  async call(name, args = {}) {
    const result = await this.client.callTool({ name, arguments: args });
    return { isError: result.isError ?? false, ...JSON.parse(result.content[0].text) };
  }

  get era() {
    return this.transport.sessionId ? 'handshake' : 'stateless';
  }

  async subscribe() {
    if (this.era === 'stateless') {
      this.subscription = await this.client.listen({ resourceSubscriptions: [INBOX] });
      return;
    }
    await within(this.streaming, 'the stream of notices');
    await this.client.subscribeResource({ uri: INBOX });
  }

  async leave() {
    await this.subscription?.close();
    await this.client.close();
  }
}

const stranger = await Person.come();
const refused = await stranger.call('msg_inbox');
const made = await stranger.call('msg_register', { handle: 'alice' });
const other = await Person.come();
const bobMade = await other.call('msg_register', { handle: 'bob' });

const alice = await Person.come(made.token);
const bob = await Person.come(bobMade.token);
const tools = (await bob.client.listTools()).tools.map((tool) => tool.name);
await bob.subscribe();
const sent = await alice.call('msg_send', { to: 'bob', body: 'Grüße from TypeScript ✓' });
const notice = await within(bob.notice, 'the notice');
const read = await bob.client.readResource({ uri: INBOX });
const inbox = await bob.call('msg_inbox');
const reply = await bob.call('msg_reply', { message_id: sent.message_id, body: 'Received' });
const answered = await alice.call('msg_inbox');
const unknown = await alice.call('msg_send', { to: 'nobody', body: 'Hello?' });

console.log(JSON.stringify({
  era: alice.era,
  server: alice.client.getServerVersion()?.name,
  refused,
  tools,
  notice,
  digest: JSON.parse(read.contents[0].text),
  received: inbox.messages.map((message) => [message.from_handle, message.body]),
  replied: reply.isError,
  answered: answered.messages.map((message) => [message.from_handle, message.body]),
  unknown,
}));
for (const person of [stranger, other, alice, bob]) await person.leave();
