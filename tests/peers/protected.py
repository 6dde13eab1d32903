"""A server made with the official SDK that wants its own sign-in, and people who sign in to it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

from tests.transports.rest.test_sessions import Browser

CONNECTIONS = "/v1/me/connections"


class Memory:
    """What the server's authorization server knows: apps, codes and tokens, and whose they are."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.asked: list[Any] = []
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, Any] = {}
        self.people: dict[str, str] = {}
        self.revoked: list[str] = []

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        self.asked.append((client, params))
        return f"http://127.0.0.1/login/{len(self.asked) - 1}"

    def allow(self, number: int, person: str) -> str:
        """Somebody consents: where their browser is sent."""
        client, params = self.asked[number]
        code = secrets.token_hex(20)
        names = params.model_dump(exclude={"state"}) | {"scopes": params.scopes or []}
        made = {"code": code, "expires_at": 2**40, "client_id": client.client_id}
        self.codes[code] = AuthorizationCode(**names, **made)
        self.people[code] = person
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        code = self.codes.pop(authorization_code.code)
        return self._pair(client, code.scopes, code.resource, self.people[code.code])

    async def load_refresh_token(self, client, refresh_token):
        return self.tokens.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.tokens[refresh_token.token]
        return self._pair(client, scopes, None, self.people[refresh_token.token])

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.revoked.append(self.people[token.token])
        self.end(self.people[token.token])

    def end(self, person: str) -> None:
        """The tokens of somebody are good for nothing any more."""
        self.tokens = {k: v for k, v in self.tokens.items() if self.people[k] != person}

    def _pair(self, client, scopes, resource, person):
        access, refresh = secrets.token_hex(20), secrets.token_hex(20)
        named = {"client_id": client.client_id, "scopes": scopes}
        self.tokens[access] = AccessToken(token=access, resource=resource, **named)
        self.tokens[refresh] = RefreshToken(token=refresh, **named)
        self.people |= {access: person, refresh: person}
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)


@asynccontextmanager
async def protected(memory: Memory) -> AsyncIterator[str]:
    """The server; the answer is its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    auth = AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
    )
    server = MCPServer("diary", auth_server_provider=memory, auth=auth, log_level="ERROR")

    @server.tool()
    async def whose() -> str:
        """Whose diary this is."""
        token = get_access_token()
        return memory.people[token.token] if token is not None else "nobody's"

    @server.resource("diary://ada/secret")
    async def secret() -> str:
        """What is in it is for its person."""
        token = get_access_token()
        return memory.people[token.token] if token is not None else "nobody's"

    # Settings of the log would stay with the process and silence what other tests look for.
    config = uvicorn.Config(server.streamable_http_app(), log_config=None, access_log=False)
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve([listening]))
    try:
        yield f"{base}/mcp"
    finally:
        running.should_exit = True
        await task


class Person:
    """Somebody with an account at a hub, and a browser that is signed in there."""

    def __init__(self, port: int, handle: str, token: str, memory: Memory | None = None) -> None:
        self.browser, self.handle, self.token, self.memory = Browser(port), handle, token, memory

    async def follow(self, link: str) -> Any:
        """Open a link of the hub's and consent at the server; what the hub says of it."""
        return await self.sign_in(ticket=urlsplit(link).path.removeprefix("/connect/"))

    async def sign_in(self, **which: str) -> Any:
        if not self.browser.cookie:
            await self.browser.sign_in(self.token)
        begun = await self.browser.ask("POST", CONNECTIONS, which)
        if begun.status != 200:
            return begun.json()["error"]["message"]
        back = urlsplit(await self.consent(begun.json()["url"]))
        assert (
            f"{back.scheme}://{back.netloc}{back.path}" == f"{self.browser.origin}/oauth/callback"
        )
        done = await self.browser.ask("POST", f"{CONNECTIONS}/finish", {"query": back.query})
        told = done.json()
        return told["namespace"] if done.status == 200 else told["error"]["message"]

    async def connections(self) -> dict[str, Any]:
        """The servers that they sign in to, as they see them."""
        if not self.browser.cookie:
            await self.browser.sign_in(self.token)
        found = (await self.browser.get(CONNECTIONS))["connections"]
        return {each["namespace"]: each for each in found}

    async def consent(self, url: str) -> str:
        """Consent at the server's own sign-in: where the browser is sent."""
        async with httpx2.AsyncClient() as http:
            place = (await http.get(url)).headers["location"]
        if self.memory is None:
            return place
        return self.memory.allow(int(place.rpartition("/")[2]), self.handle)
