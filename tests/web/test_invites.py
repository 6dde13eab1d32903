from __future__ import annotations

import html
import io
import json
import logging

import pytest
from starlette.routing import Route

from folkmoot.telemetry import logs
from folkmoot.web.invites import INVITES
from folkmoot.web.pages import Pages
from tests.harness import Answer, ask, run, serving

CODE = "Gm4kd93mPqk2LsQxVt7y8A"
CLAIMED = "Zz4kd93mPqk2LsQxVt7y8B"


class Desk:
    """Answers for two codes, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def state(self, code: str) -> str:
        self.asked.append(code)
        return {CODE: "valid", CLAIMED: "claimed"}.get(code, "unknown")


def open_invite(code: str, desk: Desk | None = None, **request: str) -> Answer:
    pages = Pages(version="1", public_url="", invite_state=(desk or Desk()).state)

    async def main() -> Answer:
        # The harness has pages of its own, without invites: these are beside them.
        async with serving([Route("/one/{code}", pages.invite)]) as hub:
            return await ask(hub.port, f"/one/{code}", headers=request)

    return run(main())


@pytest.mark.requirement("invite.page-valid", "invite.page-html")
def test_a_valid_invite_says_so_and_how_to_use_it() -> None:
    answer = open_invite(CODE)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    text = html.unescape(answer.text)
    assert "This invite is valid. Use it in your MCP client to register." in text
    assert f"Register me as @yourname, with the invite code {CODE}" in text
    assert "/mcp</code>" in text


@pytest.mark.requirement("invite.page-claimed", "invite.page-html")
def test_a_claimed_invite_says_so() -> None:
    answer = open_invite(CLAIMED)
    assert answer.status == 410
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "This invite has already been claimed." in answer.text
    assert CLAIMED not in answer.text


@pytest.mark.requirement("invite.page-invalid", "invite.page-html")
@pytest.mark.parametrize("code", ["nobody-has-this", "a" * 200, "%3Cscript%3E", "%00", "..%2F.."])
def test_an_unknown_code_says_so_and_comes_back_in_no_form(code: str) -> None:
    answer = open_invite(code)
    assert answer.status == 404
    if "%2F" not in code:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "Invalid invite code." in answer.text
    assert "<script>\n" not in answer.text
    assert code not in answer.text


def test_only_what_can_be_a_code_is_looked_up() -> None:
    desk = Desk()
    for code in ("a" * 200, "a%20b", "%00", "caf%C3%A9"):
        open_invite(code, desk)
    assert desk.asked == []


def test_a_program_gets_the_page_too() -> None:
    answer = open_invite("unknown", accept="application/json")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_page_is_kept_by_no_cache_and_no_search_engine() -> None:
    for code in (CODE, CLAIMED, "unknown"):
        answer = open_invite(code)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-robots-tag"] == "noindex, nofollow"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert '<meta name="robots" content="noindex">' in answer.text


def test_a_hub_without_invites_knows_none() -> None:
    async def main() -> Answer:
        async with serving() as hub:
            return await ask(hub.port, f"/invite/{CODE}")

    assert run(main()).status == 404


def test_a_code_is_never_logged() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure("debug", "json", stream)

    async def main() -> None:
        async with serving() as hub:
            await ask(hub.port, f"/invite/{CODE}")
            await ask(hub.port, f"/invite/{CODE}?token=sk_{'0' * 64}", method="HEAD")

    try:
        run(main())
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        logging.captureWarnings(capture=False)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["path"] for line in lines if line.get("msg", line.get("message")) == "request"]
    assert CODE not in stream.getvalue()
    assert "sk_0" not in stream.getvalue()


def test_the_three_texts_are_those_of_the_protocol() -> None:
    texts = {state: (it.status, it.text) for state, it in INVITES.items() if state != "expired"}
    assert texts == {
        "unknown": (404, "Invalid invite code."),
        "claimed": (410, "This invite has already been claimed."),
        "valid": (200, "This invite is valid. Use it in your MCP client to register."),
    }
