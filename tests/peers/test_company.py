"""People of a company sign in at its provider, which is a real one."""

from __future__ import annotations

import asyncio
import re
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest

from tests.conformance.node import node_or_skip
from tests.ports import free_port
from tests.transports.rest.support import house
from tests.transports.rest.test_sessions import SESSION, Browser

SCRIPT = Path(__file__).with_name("company.mjs")
SECRET = "a secret, with signs: + & %"
OPTIONS = {"client_id": "hub", "client_secret": SECRET, "groups_claim": "groups"}


async def sign_in(name: str, url: str, hub: str) -> str:
    """Fill in the provider's forms; where it sends the browser back to."""
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(url)
        while True:
            if answer.is_redirect:
                url = urljoin(url, answer.headers["location"])
                if url.startswith(hub):
                    return url.removeprefix(hub)
                answer = await browser.get(url)
                continue
            assert answer.status_code == 200, answer.text
            [action] = re.findall(r'<form[^>]* action="([^"]+)"', answer.text)
            hidden = re.findall(r'type="hidden" name="(\w+)" value="(\w*)"', answer.text)
            url = urljoin(url, action)
            form = {**dict(hidden), "login": name, "password": "any"}
            answer = await browser.post(url, data=form)


@pytest.mark.long
async def test_people_sign_in_at_a_real_provider(tmp_path):
    node, port = node_or_skip(), free_port()
    hub = f"http://localhost:{port}"
    # A module finds its packages by where it lies.
    script = shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "node_modules").symlink_to(node.modules)
    provider = await asyncio.create_subprocess_exec(
        node.binary, script, hub, stdin=PIPE, stdout=PIPE
    )
    assert provider.stdin is not None
    assert provider.stdout is not None
    try:
        issuer = (await provider.stdout.readline()).decode().strip()
        oidc = {**OPTIONS, "issuer": issuer}
        async with house(tmp_path / "hub", port=port, sign_in={"oidc": oidc}) as there:
            for name in ("ada.byron", "grace", "ada.byron"):
                browser = Browser(there.port)
                begun = await browser.ask("GET", "/sign-in/oidc?next=/account")
                path = await sign_in(name, begun.headers["location"], hub)
                answer = await browser.ask("GET", path, sec_fetch_site="cross-site")
                assert answer.headers["location"] == "/sign-in?next=%2Faccount", answer.text
                assert (await browser.get(SESSION))["handle"] == name.replace(".", "_")
            assert await there.hub.accounts.count() == 2
            account = await there.hub.accounts.named("grace")
            [known] = (await there.hub.accounts.belongings(account.id)).company_accounts
            assert (known.issuer, known.subject, known.groups) == (issuer, "grace", ["crew"])
    finally:
        provider.stdin.close()
        await provider.wait()
