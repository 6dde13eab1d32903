"""Signing in through the proxy: the SDK's client with OAuth, at the SDK's protected server."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.harness import KEEP_ALIVE_SECONDS
from tests.mcp.client.places import Asked, Place
from tests.mcp.server.played import until
from tests.relay.standing import Standing, before

pytestmark = pytest.mark.requirement("proxy.sign-in")

# Where the browser is led in the end; nobody has to listen there.
BACK = "http://127.0.0.1:1/back"


class People:
    """An authorization server's memory. Everyone who comes is let in at once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}
        # What codes and tokens were asked for.
        self.resources: list[str | None] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: Any, params: AuthorizationParams) -> str:
        self.resources.append(params.resource)
        given = params.model_dump() | {"client_id": client.client_id, "scopes": ["use"]}
        made = {"code": secrets.token_hex(20), "expires_at": time.time() + 60}
        code = AuthorizationCode(**{**given, **made})
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._issue(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        return self.refreshes.get(token)

    async def exchange_refresh_token(
        self, client: Any, refresh: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refreshes[refresh.token]
        return self._issue(client.client_id, scopes or refresh.scopes, refresh.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        token, refresh = secrets.token_hex(20), secrets.token_hex(20)
        expires = int(time.time()) + 3600
        about: dict[str, Any] = {"client_id": client_id, "scopes": scopes, "resource": resource}
        self.tokens[token] = AccessToken(token=token, expires_at=expires, **about)
        self.refreshes[refresh] = RefreshToken(token=refresh, **about)
        return OAuthToken(access_token=token, expires_in=3600, refresh_token=refresh)


@asynccontextmanager
async def protected(people: People) -> AsyncIterator[str]:
    """A server that takes only tokens for its own address; the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    registering = ClientRegistrationOptions(enabled=True, default_scopes=["use"])
    auth: Any = {"issuer_url": origin, "resource_server_url": f"{origin}/mcp"}
    auth |= {"validate_token_resource": True, "client_registration_options": registering}
    settings = AuthSettings(required_scopes=["use"], **auth)
    server = MCPServer("protected", auth_server_provider=people, auth=settings, log_level="ERROR")

    @server.tool()
    async def whisper(word: str) -> str:
        return word.lower()

    quiet: Any = {"log_config": None, "access_log": False, "ws": "none"}
    app = server.streamable_http_app()
    http = uvicorn.Server(uvicorn.Config(app, timeout_keep_alive=KEEP_ALIVE_SECONDS, **quiet))
    task = asyncio.create_task(http.serve(sockets=[listening]))
    try:
        await until(lambda: http.started)
        yield f"{origin}/mcp"
    finally:
        http.should_exit = True
        await task


class Browser:
    """A person with a browser, and what their client keeps."""

    def __init__(self) -> None:
        self.kept: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.visited: list[str] = []
        self._came_back: dict[str, list[str]] = {}

    async def get_tokens(self) -> OAuthToken | None:
        return self.kept

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.kept = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def visit(self, url: str) -> None:
        """Follow the way to the authorization server and back."""
        async with httpx2.AsyncClient(follow_redirects=False, timeout=30) as http:
            while not url.startswith(BACK):
                self.visited.append(url)
                answer = await http.get(url)
                assert answer.status_code in (302, 307), answer.text
                url = answer.headers["location"]
        self._came_back = parse_qs(urlsplit(url).query)

    async def came_back(self) -> AuthorizationCodeResult:
        found = self._came_back
        return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

    def signing_in(self, url: str) -> OAuthClientProvider:
        about = OAuthClientMetadata(redirect_uris=[BACK], token_endpoint_auth_method="none")
        return OAuthClientProvider(url, about, self, self.visit, self.came_back)


@asynccontextmanager
async def signed_in(proxy: Standing, browser: Browser, mode: str) -> AsyncIterator[Client]:
    """A client of someone who signs in if need be."""
    auth = browser.signing_in(proxy.url)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=30) as http,
        Client(streamable_http_client(proxy.url, http_client=http), mode=mode) as client,
    ):
        yield client


async def called(proxy: Standing, browser: Browser, mode: str) -> str:
    """What the tool answers."""
    async with signed_in(proxy, browser, mode) as client:
        return str((await client.call_tool("whisper", {"word": "HUSH"})).content[0].text)


def base_of(url: str) -> str:
    return url.removesuffix("/mcp")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_signs_in_through_the_proxy_and_its_token_is_the_servers(mode):
    people, browser = People(), Browser()
    async with protected(people) as url, before(url) as proxy:
        assert await called(proxy, browser, mode) == "hush"
        assert browser.visited[0].startswith(f"{base_of(proxy.url)}/oauth/0/authorize?")
        assert people.resources == [url]
        # Neither code nor token is on the tape, nor is anything of the sign-in.
        assert {what for _, what in proxy.told()} >= {"tools/call"}
        # The same again, without the browser.
        assert await called(proxy, browser, mode) == "hush"
        assert len(people.resources) == 1


async def test_an_expired_token_is_renewed_through_the_proxy():
    people, browser = People(), Browser()
    async with protected(people) as url, before(url) as proxy:
        assert await called(proxy, browser, "legacy") == "hush"
        kept: Any = browser.kept
        people.tokens[kept.access_token].expires_at = 1
        form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        form |= {"client_id": browser.client.client_id, "resource": proxy.url}
        answer = await proxy.http.post(f"{base_of(proxy.url)}/oauth/0/token", data=form)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert people.tokens[answer.json()["access_token"]].resource == url


async def test_metadata_name_the_proxy_and_challenges_lead_to_them():
    async with protected(People()) as url, before(url) as proxy:
        base, origin = base_of(proxy.url), base_of(url)
        refused = await proxy.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401
        metadata = f"{base}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{metadata}"' in refused.headers["www-authenticate"]
        for place in (metadata, metadata.removesuffix("/mcp")):
            found = (await proxy.http.get(place)).json()
            assert found["resource"] == proxy.url
            assert found["authorization_servers"] == [f"{base}/oauth/0"]
        known = f"{base}/.well-known/oauth-authorization-server"
        for place, issuer in ((f"{known}/oauth/0", f"{base}/oauth/0"), (known, base)):
            found = (await proxy.http.get(place)).json()
            assert found["issuer"] == issuer
            assert found["token_endpoint"].startswith(f"{base}/oauth/")
            # What names no resource goes to the authorization server itself.
            assert found["registration_endpoint"] == f"{origin}/register"
        for which in ("1", "x", "-1", "999999", "%31"):
            assert (await proxy.http.get(f"{known}/oauth/{which}")).status_code == 404


SERVER = {
    "issuer": "ORIGIN",
    "authorization_endpoint": "ORIGIN/authorize",
    "token_endpoint": "ORIGIN/token",
}


@asynccontextmanager
async def telling(metadata: Any, server: Any = SERVER) -> AsyncIterator[tuple[Standing, str, str]]:
    """A proxy before a server that only tells these metadata of itself and of its authorization.

    With it the address of the proxy, and that of the server.
    """

    async def tell(asked: Asked) -> None:
        told = {"oauth-protected-resource/mcp": metadata, "oauth-authorization-server": server}
        found = told.get(asked.path.removeprefix("/.well-known/"))
        if found is None:
            await asked.say(404)
        else:
            body = json.dumps(found).replace("ORIGIN", base_of(place.url)).encode()
            await asked.say(200, body, content_type="application/json")

    if isinstance(metadata, dict):
        metadata = {"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"], **metadata}
    async with Place(tell).open() as place, before(place.url) as proxy:
        yield proxy, base_of(proxy.url), base_of(place.url)


async def test_an_authorization_server_that_names_itself_is_left_to_the_client():
    named = {"authorization_response_iss_parameter_supported": True}
    async with telling({}, SERVER | named) as (proxy, base, origin):
        found = (await proxy.http.get(f"{base}/.well-known/oauth-protected-resource/mcp")).json()
        assert (found["authorization_servers"], found["resource"]) == ([origin], proxy.url)


@pytest.mark.requirement("proxy.sign-in-refused")
@pytest.mark.parametrize(
    "resource",
    [
        "https://victim.example/mcp",
        "ORIGIN.victim.example/mcp",
        "ORIGIN/other",
        "ORIGIN/mc",
        "ORIGIN/mcp/below",
        "http://127.0.0.1:1/mcp",
        "victim",
        "",
    ],
)
async def test_a_server_that_names_another_resource_than_itself_is_refused_sign_in(resource):
    async with telling({"resource": resource}) as (proxy, base, _):
        known, which = f"{base}/.well-known", ("0", "origin")
        asked = {"response_type": "code", "resource": proxy.url}
        for answer in (
            await proxy.http.get(f"{known}/oauth-protected-resource/mcp"),
            await proxy.http.get(f"{known}/oauth-authorization-server"),
            await proxy.http.get(f"{known}/oauth-authorization-server/oauth/0"),
            *[await proxy.http.get(f"{base}/oauth/{n}/authorize", params=asked) for n in which],
            *[await proxy.http.post(f"{base}/oauth/{n}/token", data=asked) for n in which],
        ):
            assert answer.status_code == 502, answer.text
            assert "is not its own address" in answer.text


@pytest.mark.parametrize("resource", ["ORIGIN/mcp", "ORIGIN/mcp/", "ORIGIN", "ORIGIN/"])
async def test_a_server_can_name_itself_or_a_path_above_it_as_the_resource(resource):
    async with telling({"resource": resource}) as (proxy, base, origin):
        asked = {"resource": proxy.url}
        answer = await proxy.http.get(f"{base}/oauth/0/authorize", params=asked)
        led = parse_qs(urlsplit(answer.headers["location"]).query)
        assert led["resource"] == [resource.replace("ORIGIN", origin)]


async def test_a_server_without_metadata_has_none_and_one_that_lies_gets_nothing():
    async with telling(None, None) as (proxy, base, _):
        for place in ("oauth-protected-resource", "oauth-authorization-server"):
            assert (await proxy.http.get(f"{base}/.well-known/{place}")).status_code == 404
    for issuer, status in (("https://honest.example", 404), ("ORIGIN", 502)):
        lies = {"issuer": issuer, "token_endpoint": "file:///etc/passwd"}
        async with telling({}, lies) as (proxy, base, _):
            answer = await proxy.http.post(f"{base}/oauth/0/token", data={"a": "b"})
            assert answer.status_code == status
