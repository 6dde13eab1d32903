from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.routing import Route

from folkmoot.accounts import HubInvitation
from folkmoot.app import Hub
from folkmoot.web.clients import CLIENTS
from folkmoot.web.pages import Pages
from tests.conftest import settings_of
from tests.harness import Answer, ask, run, serving
from tests.mcp_harness import settings
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
        # Without a form it posts nowhere.
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
    assert "Ada &lt;b&gt;L (@ada) invites you" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; $code\nCome!" in text
    assert text.count("<script>") == 1
    plain = HubInvitation("valid", inviter="ada", inviter_name="ada", message=" \n")
    text = open_invite(CODE, Desk(plain)).text
    assert ">@ada invites you" in text
    assert "blockquote" not in text.partition("</style>")[2]
    long = HubInvitation("valid", inviter="ada", message="x" * 5_000)
    assert f"{'x' * 2_000}…<" in open_invite(CODE, Desk(long)).text
    assert "The operator of this hub invites you." in open_invite(CODE).text


class Browser:
    """Someone who follows a link to a hub and fills in its form."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.port = int(hub.base_url.rpartition(":")[2])

    async def open(self, code: str) -> Answer:
        return await ask(self.port, f"/invite/{code}")

    async def submit(self, code: str, body: str, **headers: str) -> Answer:
        form, origin = "application/x-www-form-urlencoded", f"http://127.0.0.1:{self.port}"
        told = {"content-type": form, "origin": origin, **headers}
        path, sent = f"/invite/{code}", body.encode()
        return await ask(self.port, path, method="POST", headers=told, body=sent)


@pytest.fixture
async def browser(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Browser]:
    async with Hub(settings(tmp_path, **settings_of(request))).running() as hub:
        yield Browser(hub)


@pytest.mark.requirement("invite.page-form")
async def test_whoever_was_invited_registers_on_the_page(browser):
    ada = (await browser.hub.accounts.register("ada")).account
    code = await browser.hub.accounts.create_invite(ada, "Come aboard.")
    page = await browser.open(code)
    assert '<form class="join" method="post">' in page.text
    assert "form-action 'self'" in page.headers["content-security-policy"]
    # With `no-referrer` browsers would send the form with `Origin: null`.
    assert page.headers["referrer-policy"] == "same-origin"
    for typed, why in (
        ("handle=ada", "Handle already taken."),
        ("handle=%3Cb%3E", "Invalid handle."),
        ("", "Invalid handle."),
        ("handle=" + "x" * 5_000, "Invalid handle."),
        ("&".join(f"a{n}=1" for n in range(20)), "Invalid handle."),
        ("handle=%ff%fe", "Invalid handle."),
    ):
        refused = await browser.submit(code, typed)
        assert refused.status == 400
        assert f'<p class="wrong" role="alert">{why}' in refused.text
        assert "<b>" not in refused.text.partition("<form")[2].partition("</form>")[0]
    assert 'value="ada"' in (await browser.submit(code, "handle=ada")).text
    strange = await browser.submit(code, "{}", **{"content-type": "application/json"})
    assert (strange.status, code in strange.text) == (415, False)
    foreign = await browser.submit(code, "handle=bob", origin="https://evil.example")
    assert foreign.status == 403
    joined = await browser.submit(code, "handle=%40Bob")
    assert (joined.status, joined.headers["cache-control"]) == (200, "no-store")
    assert "You are @bob." in joined.text
    found = re.search(r"/mcp\?token=(sk_[0-9a-f]{64})", joined.text)
    assert found is not None
    assert re.search(r"<code>([A-Z2-9]{4}-){2}[A-Z2-9]{4}</code>", joined.text)
    check_settings(joined.text, found[1])
    assert "sk_" not in (await ask(browser.port, "/")).text.replace("sk_…", "")
    bob = await browser.hub.accounts.authenticate(found[1])
    assert bob is not None
    [message] = (await browser.hub.mail.inbox(bob)).messages
    assert (message.from_handle, message.body) == ("ada", "Come aboard.")
    again = await browser.submit(code, "handle=carol")
    assert (again.status, "already been claimed" in again.text) == (410, True)
    assert await browser.hub.accounts.count() == 2


def check_settings(page: str, token: str) -> None:
    """Every client is given settings with the token, and no link has it."""
    shown = html.unescape(page)
    found = re.search(r"<code>(http://[^<]+/mcp)\?token=", shown)
    for client in CLIENTS.values():
        if client.id != "claude-code":
            assert f"<code>{client.snippet(found[1], token)}</code>" in shown
    assert f"{found[1]} --header 'Authorization: Bearer {token}'</code>" in shown
    assert f'"headers":{{"Authorization":"Bearer {token}"}}' in shown
    assert token not in "".join(re.findall(r'(?:href|src|action)="[^"]*"', page))


@pytest.mark.requirement("browser.register-and-recover")
async def test_the_form_signs_the_browser_in_and_that_of_another_port_does_not(browser):
    """Else a page of another port could sign someone in to an account of its own."""
    own = f"http://localhost:{browser.port}"
    for handle, origin, site, signed_in in (
        ("amy", own, "same-origin", True),
        ("ben", f"http://localhost:{browser.port + 1}", "same-site", False),
        ("cat", own, "same-site", False),
    ):
        code = await browser.hub.accounts.create_invite(None)
        head = {"origin": origin, "sec-fetch-site": site}
        joined = await browser.submit(code, f"handle={handle}", **head)
        assert joined.status == 200
        assert ("set-cookie" in joined.headers) is signed_in
        assert ('href="/inbox"' in joined.text) is signed_in
        # Whoever is signed in here makes a passkey, and sees a token only if they ask for it.
        folded = re.sub("<details>.*</details>", "", joined.text, flags=re.DOTALL)
        assert ("sk_" not in folded) is signed_in
        assert ('href="/account?passkey"' in folded) is signed_in


@pytest.mark.requirement("invite.page-form")
@pytest.mark.settings(registration="closed")
async def test_an_invite_for_one_handle_registers_that_one_and_a_closed_hub_has_no_form(browser):
    plain = await browser.hub.accounts.create_invite(None)
    shown = (await browser.open(plain)).text
    assert "<form" not in shown
    assert "Registration is closed on this server" in shown
    assert "<form" not in (await browser.submit(plain, "handle=eve")).text
    made = await browser.hub.accounts.invite_for("gina")
    assert "readonly" in (await browser.open(made.code)).text
    assert "You are @gina." in (await browser.submit(made.code, "handle=eve")).text
    assert await browser.hub.accounts.count() == 1


@pytest.mark.requirement("invite.page-form")
@pytest.mark.settings(rate_limits="on")
async def test_the_form_counts_towards_the_limits_of_registering(browser):
    codes = [await browser.hub.accounts.create_invite(None) for _ in range(6)]
    answers = [await browser.submit(code, f"handle=person{n}") for n, code in enumerate(codes)]
    assert [it.status for it in answers] == [200] * 5 + [429]
    assert await browser.hub.accounts.count() == 5
