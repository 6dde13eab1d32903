"""`folkmoot open`: a link that signs a browser in, made by its owner or by the operator."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.transports.rest.support import done
from tests.transports.rest.test_sessions import SESSION, Browser


@pytest.mark.requirement("browser.one-time-code", "browser.listed")
def test_the_command_makes_a_link_and_the_list_of_tokens_ends_the_session(hub, ada, cli):
    port = hub.port

    made = ada("open", "--print")
    link = re.fullmatch(rf"http://localhost:{port}/sign-in#(oc_[0-9a-f]{{64}})\n", made.out)
    assert link is not None, made
    assert made.err == "Open this link to be signed in as @ada. It works once, for two minutes.\n"
    operators = cli.json("open", "--for", "@ada")
    assert operators["url"].startswith(f"http://localhost:{port}/sign-in#oc_")

    running = cli.json("open", "--for", "ada", "--operate")
    assert running["url"].startswith(f"http://localhost:{port}/sign-in?next=/#oc_")

    async def use() -> Browser:
        browser = Browser(port)
        for code in (link[1], operators["url"].partition("#")[2]):
            done(await browser.ask("POST", f"{SESSION}/code", {"code": code}), 200)
        return browser

    browser = asyncio.run(use())
    (session,) = (it for it in ada.json("tokens") if it["kind"] == "browser")
    assert session["label"] == "Firefox on Linux"
    table = ada.shown("tokens")
    assert "Firefox on Linux" in table
    assert "browser" in table
    assert ada("tokens", "revoke", session["id"]).code == 0
    assert asyncio.run(browser.get(SESSION))["handle"] is None

    cli.fails("open", "--print", "--for", "nobody", told="Nobody has the handle @nobody.")
    hub.stop()
    cli.fails("open", "--for", "ada", told="No hub is running, so there is no page to open.")
