// A client of the official SDK that signs in by itself. For each line it reads, it calls
// `msg_whoami` and writes a line with the answer.
// Arguments: the URL of `/mcp`, which SDK and how it is to negotiate, the browser it opens, and a
// file with what a process before it kept.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [url, kind, browser, file] = process.argv.slice(2);
const { Client } = await import(
  kind === 'v1' ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StreamableHTTPClientTransport } = await import(
  kind === 'v1' ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
const mode = { 'v2-handshake': 'legacy', 'v2-stateless': { pin: '2026-07-28' } }[kind];

const kept = existsSync(file) ? JSON.parse(readFileSync(file)) : {};
let back;
const authProvider = {
  redirectUrl: 'http://127.0.0.1:7777/callback',
  clientMetadata: { client_name: kind, redirect_uris: ['http://127.0.0.1:7777/callback'] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
    if (!existsSync(file)) writeFileSync(file, JSON.stringify(kept));
  },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  invalidateCredentials: (what) => { if (what !== 'client') delete kept.tokens; },
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (found) => { kept.discovery = found; },
  redirectToAuthorization: (address) => {
    back = new URL(execFileSync(browser, [address.href, '-'], { encoding: 'utf8' })).searchParams;
  },
};

let client;
let transport;
const call = async () => {
  if (!client) {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    const made = new Client({ name: kind, version: '1.0.0' }, { versionNegotiation: { mode } });
    await made.connect(transport);
    client = made;
  }
  return (await client.callTool({ name: 'msg_whoami', arguments: {} })).content[0].text;
};
const answered = async () => {
  try {
    return await call();
  } catch (error) {
    if (!back) throw error;
    await transport.finishAuth(kind === 'v1' ? back.get('code') : back);
    back = undefined;
    // A session ends with what its person allowed.
    client = undefined;
    return call();
  }
};

for await (const _ of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answered().catch((error) => `failed: ${error.stack}`)));
}
process.exit();
