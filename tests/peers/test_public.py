"""A hub behind Caddy, nginx and HAProxy, each with the very file that the documentation shows."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import ssl
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from websockets.asyncio.client import connect

from tests.certificates import certificate
from tests.mcp_harness import meeting
from tests.peers.clients import LEGACY, MODERN
from tests.peers.test_sign_in import BACK, SCOPES, Keeper
from tests.ports import free_port

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]
PAGE = Path(__file__).parents[2] / "docs" / "operations" / "public.md"
# What a file needs beside it to run for itself, where nobody else is disturbed.
AROUND = {
    "caddy": "{{\n    admin off\n    auto_https disable_redirects\n}}\n{}",
    "nginx": "pid {folder}/pid; error_log stderr; events {{}} http {{ {} }}",
    "haproxy": "{}",
}
COMMANDS = {
    "caddy": ["caddy", "run", "--adapter", "caddyfile", "--config"],
    "nginx": ["nginx", "-g", "daemon off;", "-c"],
    "haproxy": ["haproxy", "-db", "-f"],
}


def written(folder, name, port, hub_port):
    """The file that the page shows, for this machine."""
    (shown,) = re.findall(rf"```{name}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    cert, key = certificate(folder)
    (folder / "hub.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    for there, here in (
        ("hub.example.org {", f"https://localhost:{port} {{"),
        ("hub.example.org", "localhost"),
        ("/etc/folkmoot/fullchain.pem", str(cert)),
        ("/etc/folkmoot/privkey.pem", str(key)),
        ("/etc/folkmoot/hub.pem", str(folder / "hub.pem")),
        ("/var/log/nginx/", f"{folder}/"),
        ("listen 443", f"listen {port}"),
        ("bind :443", f"bind :{port}"),
        ("127.0.0.1:8420", f"127.0.0.1:{hub_port}"),
    ):
        shown = shown.replace(there, here)
    path = folder / "proxy.conf"
    path.write_text(AROUND[name].format(shown, folder=folder))
    return path, ssl.create_default_context(cafile=cert)


@asynccontextmanager
async def proxied(folder, name, port, hub_port):
    """The proxy, listening; and what trusts its certificate."""
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    path, trusting = written(folder, name, port, hub_port)
    running = await asyncio.create_subprocess_exec(
        *COMMANDS[name], path, env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"}
    )
    try:
        while True:
            assert running.returncode is None, "the proxy did not start"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield trusting
    finally:
        running.terminate()
        await running.wait()


class Consenting:
    """A person at a browser who comes through the proxy too, and allows what they are asked."""

    def __init__(self, http, base, token):
        self.http, self.token, self.back = http, token, {}
        self.page = {"origin": base, "folkmoot-page": "1", "sec-fetch-site": "same-origin"}
        self.base = base

    async def open(self, url):
        assert url.startswith(f"{self.base}/authorize?")
        signed_in = await self.ask("/v1/session", {"token": self.token})
        assert signed_in.headers["set-cookie"].startswith("__Host-")
        given = {"query": urlsplit(url).query, "allow": True, "scopes": SCOPES}
        told = await self.ask("/v1/authorization", given)
        query = urlsplit(told.json()["redirect"]).query
        self.back = {name: value for name, (value,) in parse_qs(query).items()}

    async def ask(self, path, given):
        return await self.http.post(f"{self.base}{path}", json=given, headers=self.page)

    async def answer(self):
        assert self.back["iss"] == self.base
        return AuthorizationCodeResult(**self.back)


@pytest.mark.parametrize("name", COMMANDS)
async def test_the_sdk_signs_in_and_everything_arrives_through_a_proxy(tmp_path, name):
    port = free_port()
    base = f"https://localhost:{port}"
    values = {
        "public_url": base,
        "http": {"trusted_proxies": ["127.0.0.1"]},
        "rate_limits": "on",
        "rates": {"sign_in_per_hour": 2},
    }
    async with (
        meeting(tmp_path / "hub", **values) as hub,
        proxied(tmp_path / "proxy", name, port, hub.port) as tls,
        httpx2.AsyncClient(verify=tls, timeout=30) as http,
    ):
        ada = await hub.hub.accounts.add("ada")
        bob = await hub.hub.accounts.add("bob")
        challenge = (await http.get(f"{base}/mcp")).headers["www-authenticate"]
        assert f'"{base}/.well-known/oauth-protected-resource/mcp"' in challenge
        for mode in (LEGACY, MODERN):
            person = Consenting(http, base, ada.token)
            app = OAuthClientMetadata(client_name="SDK", redirect_uris=[BACK])
            auth = OAuthClientProvider(f"{base}/mcp", app, Keeper(), person.open, person.answer)
            async with httpx2.AsyncClient(auth=auth, verify=tls, timeout=30) as signing:
                link = streamable_http_client(f"{base}/mcp", http_client=signing)
                async with Client(link, mode=mode) as client:
                    told = await client.call_tool("msg_whoami", {})
                    assert "ada" in told.content[0].text, mode
        http.cookies.clear()
        signed, streamed = {"authorization": f"Bearer {ada.token}"}, {"accept": "text/event-stream"}
        made = await http.post(f"{base}/v1/rooms", json={"name": "tea"}, headers=signed)
        assert made.status_code == 201, made.text
        async with (
            asyncio.timeout(30),
            http.stream("GET", f"{base}/v1/events", headers=signed | streamed) as events,
            connect(
                f"wss://localhost:{port}/ws?room=tea", ssl=tls, additional_headers=signed
            ) as socket,
        ):
            assert events.status_code == 200, (await events.aread()).decode()
            lines = events.aiter_lines()
            await hub.hub.mail.send(bob.account, "ada", body="hello")
            while "mail.received" not in await anext(lines):
                pass
            assert json.loads(await socket.recv())["kind"] == "system.welcome"
        large = {"to": "bob", "body": "x" * 2_000_000}
        answer = await http.post(f"{base}/v1/messages", json=large, headers=signed)
        # The hub itself says that it is too long.
        assert "error" in answer.json()
        assert [await guesses(base, tls, address) for address in ("127.0.0.7", "127.0.0.8")] == [
            [401, 401, 429],
            [401, 401, 429],
        ]


async def guesses(base, tls, address):
    """What an address is answered that claims to be another one each time."""
    link = httpx2.AsyncHTTPTransport(verify=tls, local_address=address)
    page = {"origin": base, "folkmoot-page": "1", "sec-fetch-site": "same-origin"}
    wrong, told = {"token": "sk_" + "0" * 64}, []
    async with httpx2.AsyncClient(transport=link, timeout=30) as http:
        for n in range(3):
            headers = page | {"x-forwarded-for": f"203.0.113.{n}"}
            answer = await http.post(f"{base}/v1/session", json=wrong, headers=headers)
            told.append(answer.status_code)
    return told
