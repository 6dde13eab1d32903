from __future__ import annotations

import html
import json
import re

import pytest
from starlette.routing import Route

from folkmoot.accounts import HubInvitation
from folkmoot.web.pages import Pages
from tests.harness import Answer, ask, run, serving
from tests.transports.rest.conftest import log

__all__ = ["log"]

CODE = "Gm4kd93mPqk2LsQxVt7y8A"
CLAIMED = "Zz4kd93mPqk2LsQxVt7y8B"
UNKNOWN = ("nobody-has-this", "a" * 200, "%3Cscript%3E", "%00", "..%2F..")


class Desk:
    """Answers for two codes, and remembers what it was asked."""

    def __init__(self, known: HubInvitation | None = None) -> None:
        self.asked: list[str] = []
        self.known = known or HubInvitation("valid", opens=True)

    async def invitation(self, code: str) -> HubInvitation:
        self.asked.append(code)
        if code == CODE:
            return self.known
        return HubInvitation("claimed" if code == CLAIMED else "unknown")


def open_invite(code: str, desk: Desk | None = None, **request: str) -> Answer:
    pages = Pages(version="1", public_url="", invitations=(desk or Desk()).invitation)

    async def main() -> Answer:
        # The harness has pages of its own, without invites: these are beside them.
        async with serving([Route("/one/{code}", pages.invite)]) as hub:
            return await ask(hub.port, f"/one/{code}", headers=request)

    return run(main())


@pytest.mark.requirement(
    *("invite.page-valid", "invite.page-claimed", "invite.page-invalid", "invite.page-html")
)
@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        (CODE, 200, "This invite is valid. Use it in your MCP client to register."),
        (CLAIMED, 410, "This invite has already been claimed."),
        *((code, 404, "Invalid invite code.") for code in UNKNOWN),
    ],
)
def test_the_page_says_what_an_invite_is_worth_and_is_kept_by_nobody(
    code: str, status: int, says: str
):
    # A program gets the page too.
    answer = open_invite(code, accept="application/json")
    assert answer.status == status
    if "%2F" not in code:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-robots-tag"] == "noindex, nofollow"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert '<meta name="robots" content="noindex">' in answer.text
        assert says in html.unescape(answer.text)
    assert "<script>\n" not in answer.text
    if code == CODE:
        use = f"Register me as @yourname, with the invite code {CODE}"
        assert use in html.unescape(answer.text)
        assert "/mcp</code>" in answer.text
        assert "<form" not in answer.text
        assert "form-action 'none'" in answer.headers["content-security-policy"]
    else:
        assert code not in answer.text


def test_only_what_can_be_a_code_is_looked_up():
    desk = Desk()
    for code in ("a" * 200, "a%20b", "%00", "caf%C3%A9"):
        open_invite(code, desk)
    assert desk.asked == []


async def test_a_hub_without_invites_knows_none():
    async with serving() as hub:
        assert (await ask(hub.port, f"/invite/{CODE}")).status == 404


async def test_a_code_is_never_logged(log):
    async with serving() as hub:
        await ask(hub.port, f"/invite/{CODE}")
        await ask(hub.port, f"/invite/{CODE}?token=sk_{'0' * 64}", method="HEAD")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["path"] for line in lines if line.get("msg", line.get("message")) == "request"]
    assert CODE not in log.getvalue()
    assert "sk_0" not in log.getvalue()


@pytest.mark.requirement("invite.page-inviter")
def test_the_page_says_who_invites_and_what_they_wrote():
    hostile = "<script>alert(1)</script> $code\nCome!"
    known = HubInvitation("valid", inviter="ada", inviter_name="Ada <b>L", message=hostile)
    text = open_invite(CODE, Desk(known)).text
    assert "Ada &lt;b&gt;L (@ada) invited you to Folkmoot." in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; $code\nCome!" in text
    assert text.count("<script>") == 1
    plain = HubInvitation("valid", inviter="ada", inviter_name="ada", message=" \n")
    text = open_invite(CODE, Desk(plain)).text
    assert ">@ada invited you to Folkmoot." in text
    assert "blockquote" not in text.partition("</style>")[2]
    long = HubInvitation("valid", inviter="ada", message="x" * 5_000)
    assert f"{'x' * 2_000}…<" in open_invite(CODE, Desk(long)).text
    assert ">You are invited to Folkmoot." in open_invite(CODE).text


@pytest.mark.requirement("invite.page-form")
@pytest.mark.parametrize(
    ("options", "leads"),
    [
        ({"opens": True}, f"/sign-in#invite={CODE}"),
        ({"opens": True, "handle": "gina"}, f"/sign-in#invite={CODE}&handle=gina"),
        ({"opens": False}, None),
    ],
)
def test_the_page_leads_to_the_one_where_everyone_registers_if_the_code_opens_an_account(
    options, leads
):
    text = open_invite(CODE, Desk(HubInvitation("valid", **options))).text
    found = re.search(r'<a class="button" href="([^"]*)">Create your account</a>', text)
    assert (html.unescape(found[1]) if found else None) == leads
    assert ("Registration is closed on this server" in text) is (leads is None)
