"""The SDK's own client signs in by itself: it is told where, registers, and asks a person."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from tests.peers.clients import LEGACY, MODERN
from tests.transports.rest.support import done
from tests.transports.rest.test_apps import AUTHORIZATION
from tests.transports.rest.test_sessions import Browser

BACK = "http://127.0.0.1:7777/callback"
SCOPES = ["mail.read", "account.read"]


class Keeper:
    """What a client keeps between its runs."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Consenting:
    """A person at a browser who allows what they are asked."""

    def __init__(self, port, token):
        self.browser, self.token, self.back = Browser(port), token, {}

    async def open(self, url):
        if not self.browser.cookie:
            await self.browser.sign_in(self.token)
        given = {"query": urlsplit(url).query, "allow": True, "scopes": SCOPES}
        told = done(await self.browser.ask("POST", AUTHORIZATION, given), 200)
        self.back = {k: v for k, (v,) in parse_qs(urlsplit(told["redirect"]).query).items()}

    async def answer(self):
        return AuthorizationCodeResult(**self.back)


def signing_in(hub, person, keeper):
    metadata = OAuthClientMetadata(client_name="SDK", redirect_uris=[BACK])
    return OAuthClientProvider(hub.url, metadata, keeper, person.open, person.answer)


@pytest.mark.settings(registration="invite")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_sdk_signs_in_by_itself_and_renews_by_itself(hub, mode):
    made = await hub.hub.accounts.add("ada")
    person, keeper = Consenting(hub.port, made.token), Keeper()
    for visit in range(2):
        auth = signing_in(hub, person, keeper)
        async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
            link = streamable_http_client(hub.url, http_client=http)
            async with Client(link, mode=mode) as client:
                told = await client.call_tool("msg_whoami", {})
                assert "ada" in told.content[0].text, visit
