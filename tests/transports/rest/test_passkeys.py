"""Passkeys over REST: a browser registers one and signs in with it, and nobody else does."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.passkeys import Authenticator
from tests.transports.rest.support import done, refused
from tests.transports.rest.test_sessions import ME, SESSION, TOKENS, Browser

PATH = "/v1/me/passkeys"
SIGN_IN = f"{SESSION}/passkey"


@pytest.fixture
async def browser(hub, ada):
    return await Browser(hub.port).sign_in(ada.token)


async def add(browser, name="Laptop"):
    """A passkey that a browser makes, and the authenticator that has it."""
    authenticator = Authenticator(browser.origin)
    begun = done(await browser.ask("POST", f"{PATH}/challenge"), 200)
    answer = authenticator.make(begun["options"])
    given = {"name": name, "ticket": begun["ticket"], "credential": answer}
    return authenticator, done(await browser.ask("POST", PATH, given), 201)


async def sign_in(browser, authenticator, **lies):
    begun = done(await browser.ask("POST", f"{SIGN_IN}/challenge"), 200)
    answer = authenticator.sign(begun["options"], **lies)
    return await browser.ask("POST", SIGN_IN, {"ticket": begun["ticket"], "credential": answer})


async def test_a_browser_adds_a_passkey_and_another_signs_in_with_it(hub, browser, log):
    authenticator, made = await add(browser)
    assert (await browser.get(PATH))["passkeys"] == [made]
    other = Browser(hub.port)
    answer = await sign_in(other, authenticator)
    assert done(answer, 200)["handle"] == "ada"
    assert (await other.get(SESSION))["scope"] == "*"
    renamed = done(await other.ask("PATCH", f"{PATH}/{made['id']}", {"name": "Old"}), 200)
    assert (renamed["name"], renamed["used_at"] is None) == ("Old", False)
    # The session stands by itself: it outlives the token that the first one was opened with.
    listed = (await other.get(TOKENS))["tokens"]
    token = next(each["id"] for each in listed if each["kind"] == "token")
    done(await other.ask("DELETE", f"{TOKENS}/{token}"), 204)
    assert (await browser.ask("GET", ME)).status == 401
    assert (await other.get(ME))["handle"] == "ada"
    text = log.getvalue()
    assert "passkey.added" in text
    for secret in (authenticator.sign({"challenge": "x"}), authenticator.id.hex(), "sk_", "bs_"):
        assert secret not in text


async def test_the_last_passkey_needs_another_way_in_which_is_in_no_url(browser, ada):
    _, made = await add(browser)
    path = f"{PATH}/{made['id']}"
    refused(await browser.ask("DELETE", path), 403, "confirmation_invalid")
    refused(await browser.ask("DELETE", path, folkmoot_confirm="sk_x"), 403, "confirmation_invalid")
    done(await browser.ask("DELETE", path, folkmoot_confirm=ada.token), 204)
    refused(await browser.ask("DELETE", path), 404, "passkey_not_found")


async def test_only_the_hubs_own_page_signs_in_or_adds(hub, browser, ada):
    authenticator, _ = await add(browser)
    begun = done(await Browser(hub.port).ask("POST", f"{SIGN_IN}/challenge"), 200)
    given = {"ticket": begun["ticket"], "credential": authenticator.sign(begun["options"])}
    refused(await ada.ask("POST", SIGN_IN, given), 403, "origin_not_allowed")
    refused(await ada.ask("POST", f"{SIGN_IN}/challenge"), 403, "origin_not_allowed")
    refused(await ada.ask("POST", f"{PATH}/challenge"), 403, "access_denied")
    there = Browser(hub.port, "127.0.0.1")
    said = await there.ask("POST", f"{SIGN_IN}/challenge")
    refused(said, 400, "passkey_unusable")
    assert "folkmoot open" in said.json()["error"]["message"]


async def test_guesses_are_told_alike(hub, browser):
    authenticator, _ = await add(browser)
    stranger = Browser(hub.port)
    told = [await sign_in(stranger, each) for each in (Authenticator(stranger.origin),) * 2]
    told.append(await sign_in(stranger, authenticator, rp_id="evil.example"))
    assert len({each.body for each in told}) == 1
    refused(told[0], 403, "passkey_invalid")
    assert stranger.cookie == ""


CREATE = "folkmoot/create_token"


async def present(browser, authenticator, arguments, operation=CREATE, **lies):
    """What shows that a person is there, for one call of an operation."""
    asked = {"operation": operation, "arguments": arguments}
    begun = done(await browser.ask("POST", f"{PATH}/presence", asked), 200)
    answer = authenticator.sign(begun["options"], **lies)
    return {"ticket": begun["ticket"], "passkey": answer}


async def test_whoever_has_a_passkey_only_creates_a_token_with_presence(hub, browser, bob):
    authenticator, _ = await add(browser)
    other = Browser(hub.port)
    done(await sign_in(other, authenticator), 200)
    wanted = {"label": "laptop", "scope": "mail.read"}
    refused(await other.ask("POST", TOKENS, wanted), 403, "confirmation_invalid")
    signed = await present(other, authenticator, wanted)
    bobs = await Browser(hub.port).sign_in(bob.token)
    refused(await bobs.ask("POST", TOKENS, {**wanted, **signed}), 403, "passkey_invalid")
    made = done(await other.ask("POST", TOKENS, {**wanted, **signed}), 201)
    assert (made["scope"], made["token"][:3]) == ("mail.read", "sk_")
    begun = done(await other.ask("POST", f"{SIGN_IN}/challenge"), 200)
    replayed = {"ticket": begun["ticket"], "passkey": authenticator.sign(begun["options"])}
    rows = {
        "used before": signed,
        "signed for more": await present(other, authenticator, {"label": "laptop"}),
        "signed for another operation": await present(other, authenticator, wanted, "msg/send"),
        "signed to sign in": replayed,
        "not verified": await present(other, authenticator, wanted, flags=1),
        "of another page": await present(other, authenticator, wanted, origin="http://evil"),
        "not there": {"ticket": signed["ticket"]},
    }
    for what, row in rows.items():
        answer = await other.ask("POST", TOKENS, {**wanted, **row})
        assert answer.refusal == (403, "passkey_invalid"), what
    asked = {"operation": CREATE, "arguments": wanted}
    refused(await bobs.ask("POST", f"{PATH}/presence", asked), 404, "passkey_not_found")


async def test_presence_gives_a_narrowed_browser_session_no_more_than_it_has(hub, browser, ada):
    authenticator, _ = await add(browser)
    scope = "account account.read"
    narrow = done(await ada.ask("POST", TOKENS, {"scope": scope}), 201)["token"]
    other = await Browser(hub.port).sign_in(narrow)
    for more in ({"scope": "*"}, {"scope": "mail.send"}):
        signed = await present(other, authenticator, more)
        refused(await other.ask("POST", TOKENS, {**more, **signed}), 400, "argument_invalid")
    signed = await present(other, authenticator, {})
    assert done(await other.ask("POST", TOKENS, signed), 201)["scope"] == scope


@pytest.mark.settings(rate_limits="on", rates={"sign_in_per_hour": 3})
async def test_wrong_passkeys_are_counted_by_address_whatever_is_wrong_with_them(hub, browser):
    authenticator, made = await add(browser)
    stranger = Browser(hub.port)
    refused(await sign_in(stranger, Authenticator(stranger.origin)), 403, "passkey_invalid")
    refused(await sign_in(stranger, authenticator, flags=1), 403, "passkey_invalid")
    path = f"{PATH}/{made['id']}"
    refused(await browser.ask("DELETE", path, folkmoot_confirm="x"), 403, "confirmation_invalid")
    refused(await sign_in(stranger, authenticator), 429, "rate_limited")


async def test_a_hub_starts_and_begins_without_the_library():
    code = "import folkmoot.cli, folkmoot.composition, folkmoot.accounts.passkeys, sys;"
    code += "sys.exit(any(each.partition('.')[0] == 'fido2' for each in sys.modules))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0


async def test_erasing_an_account_and_exporting_it_know_its_passkeys(hub, browser):
    authenticator, made = await add(browser)
    exported = await browser.get("/v1/me/export")
    assert [each["id"] for each in exported["passkeys"]] == [made["id"]]
    assert "public_key" not in exported["passkeys"][0]
    done(await browser.ask("DELETE", f"{ME}?confirm=ada"), 200)
    refused(await sign_in(Browser(hub.port), authenticator), 403, "passkey_invalid")
