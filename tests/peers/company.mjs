// A company's provider of OpenID Connect, which lets in whoever gives a name.
// Argument: the hub's address. It tells its own on standard output, and ends with its input.

import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const findAccount = (_, id) => ({
  accountId: id,
  claims: () => ({ sub: id, preferred_username: `${id}@example.org`, groups: ['crew'] }),
});
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'hub',
      client_secret: 'a secret, with signs: + & %',
      redirect_uris: [`${process.argv[2]}/sign-in/oidc`],
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['for this run'] },
  findAccount,
  pkce: { required: () => true },
});
server.on('request', provider.callback());
process.stdin.resume().on('end', () => process.exit());
console.log(issuer);
