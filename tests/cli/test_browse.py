"""`folkmoot open`: a link that signs a browser in, made by its owner or by the operator."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from tests.cli.conftest import Hub, Ran
from tests.transports.rest.support import done
from tests.transports.rest.test_sessions import SESSION, Browser


@pytest.mark.requirement("browser.one-time-code", "browser.listed")
def test_the_command_makes_a_link_and_the_list_of_tokens_ends_the_session(
    start_hub: Callable[..., Hub],
    folkmoot: Callable[..., Ran],
    on_terminal: Callable[..., str],
    tmp_path: Path,
) -> None:
    hub = start_hub(FOLKMOOT_RATE_LIMITS="off")
    port = int(hub.url.rpartition(":")[2])
    mine = {"FOLKMOOT_CREDENTIALS": str(tmp_path / "ada.json")}
    folkmoot("register", "ada", "--url", hub.url, **mine)

    made = folkmoot("open", "--print", **mine)
    link = re.fullmatch(rf"http://localhost:{port}/sign-in#(oc_[0-9a-f]{{64}})\n", made.out)
    assert link is not None, made
    assert made.err == "Open this link to be signed in as @ada. It works once, for two minutes.\n"
    operators = json.loads(folkmoot("open", "--for", "@ada", "--json").out)
    assert operators["url"].startswith(f"http://localhost:{port}/sign-in#oc_")

    running = json.loads(folkmoot("open", "--for", "ada", "--operate", "--json").out)
    assert running["url"].startswith(f"http://localhost:{port}/sign-in?next=/#oc_")

    async def use() -> Browser:
        browser = Browser(port)
        for code in (link[1], operators["url"].partition("#")[2]):
            done(await browser.ask("POST", f"{SESSION}/code", {"code": code}), 200)
        return browser

    browser = asyncio.run(use())
    (session,) = (
        it for it in json.loads(folkmoot("tokens", "--json", **mine).out) if it["kind"] == "browser"
    )
    assert session["label"] == "Firefox on Linux"
    table = on_terminal("tokens", **mine)
    assert "Firefox on Linux" in table
    assert "browser" in table
    assert folkmoot("tokens", "revoke", session["id"], **mine).code == 0
    assert asyncio.run(browser.get(SESSION))["handle"] is None

    for arguments, words in (
        (("--for", "nobody"), "Nobody has the handle @nobody."),
        (("--operate",), "--operate needs --for HANDLE"),
        (("--for", "ada", "--as", "ada"), "--for cannot be combined with --url or --as"),
    ):
        ran = folkmoot("open", "--print", *arguments, **mine)
        assert (ran.code != 0, ran.out) == (True, "")
        assert words in ran.err
    hub.stop()
    ran = folkmoot("open", "--for", "ada")
    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert "No hub is running, so there is no page to open." in ran.err
