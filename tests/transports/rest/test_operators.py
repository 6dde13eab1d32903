"""Accounts of operators: whose browser sessions run the hub, and whose do not."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.backends import operator as at_socket
from tests.transports.rest.support import done, refused
from tests.transports.rest.test_apps import App, connected
from tests.transports.rest.test_passkeys import add
from tests.transports.rest.test_passkeys import sign_in as use_passkey
from tests.transports.rest.test_sessions import (
    ME,
    SESSION,
    TOKENS,
    Browser,
    code_of,
    everything_open,
)

OPERATING = "* operate"
PEOPLE = "/v1/accounts"


async def set_operator(hub, handle, **given):
    return await at_socket(hub.hub, "folkmoot/set_operator", handle=handle, **given)


async def scope_of(browser):
    return (await browser.get(SESSION))["scope"]


@pytest.fixture
async def operator(hub, ada):
    """Ada, before she has a passkey."""
    await set_operator(hub, "ada")
    return ada


async def test_whoever_is_made_operator_runs_the_hub_once_they_sign_in_again(hub, ada, bob):
    before = await Browser(hub.port).sign_in(ada.token)
    made = await set_operator(hub, "ada", reason="She runs it.")
    assert made["changed"]
    assert not (await set_operator(hub, "ada"))["changed"]
    assert await scope_of(before) == "*"
    refused(await before.ask("GET", PEOPLE), 403, "scope_missing")
    browser = await Browser(hub.port).sign_in(ada.token)
    assert await scope_of(browser) == OPERATING
    rows = {row["handle"]: row for row in (await browser.get(PEOPLE))["people"]}
    assert (rows["ada"]["operator_since"], rows["bob"]["operator_since"]) == (
        made["operator_since"],
        None,
    )
    exported = await browser.get("/v1/me/export")
    assert exported["account"]["operator_since"] == made["operator_since"]
    assert await scope_of(await Browser(hub.port).sign_in(bob.token)) == "*"


async def test_a_passkey_opens_it_and_then_no_token_does_which_an_assistant_has(hub, operator):
    browser = await Browser(hub.port).sign_in(operator.token)
    authenticator, _ = await add(browser)
    assert await scope_of(browser) == OPERATING
    other = Browser(hub.port)
    done(await use_passkey(other, authenticator), 200)
    assert await scope_of(other) == OPERATING
    assert await scope_of(await Browser(hub.port).sign_in(operator.token)) == "*"
    by_code = Browser(hub.port)
    done(await by_code.enter(await code_of(operator)), 200)
    assert await scope_of(by_code) == "*"


async def test_the_recovery_code_opens_it_too(hub):
    page = Browser(hub.port)
    made = done(await page.ask("POST", PEOPLE, {"handle": "ada"}), 201)
    await set_operator(hub, "ada")
    authenticator, _ = await add(page)
    browser = Browser(hub.port)
    given = {"handle": "ada", "recovery_code": made["recovery_code"]}
    done(await browser.ask("POST", f"{PEOPLE}/recover", given), 200)
    assert await scope_of(browser) == OPERATING
    refused(await use_passkey(Browser(hub.port), authenticator), 403, "passkey_invalid")


async def test_no_token_and_no_app_of_an_operator_runs_the_hub(hub, operator):
    refused(await operator.ask("GET", PEOPLE), 403, "scope_missing")
    browser = await Browser(hub.port).sign_in(operator.token)
    wanted = {"label": "more", "scope": OPERATING}
    answer = await browser.ask("POST", TOKENS, wanted, folkmoot_confirm=operator.token)
    refused(answer, 400, "argument_invalid")
    answer = await browser.ask("POST", TOKENS, {"label": "x"}, folkmoot_confirm=operator.token)
    assert done(answer, 201)["scope"] == "*"
    app = await App(hub).register()
    tokens = await connected(app, browser)
    assert "operate" not in tokens["scope"]
    answer = await app.send("GET", PEOPLE, authorization=f"Bearer {tokens['access_token']}")
    assert answer.status in {401, 403}
    for asked in ("operate", "*", OPERATING):
        answer = await browser.ask(
            "POST",
            "/v1/authorization",
            {"query": app.query(scope=asked), "allow": True, "scopes": ["operate"]},
        )
        assert "code=" not in answer.text, answer
    # A narrower token opens a session that is as narrow.
    answer = await operator.ask("POST", TOKENS, {"label": "mail", "scope": "mail.read"})
    narrow = await Browser(hub.port).sign_in(done(answer, 201)["token"])
    assert await scope_of(narrow) == "mail.read"


async def test_whoever_is_no_operator_any_more_is_signed_out_where_they_could_run_the_hub(hub, ada):
    plain = await Browser(hub.port).sign_in(ada.token)
    await ada.create("square")
    await set_operator(hub, "ada")
    browser, late = await Browser(hub.port).sign_in(ada.token), Browser(hub.port)
    code = (await at_socket(hub.hub, "folkmoot/create_code_for", handle="ada", operate=True))[
        "code"
    ]
    given = {"handle": "ada", "scope": "operate"}
    token = await at_socket(hub.hub, "folkmoot/create_token_for", **given)
    async with asyncio.timeout(10), everything_open(browser):
        ended = await set_operator(hub, "ada", operator=False)
    assert (ended["changed"], ended["operator_since"]) == (True, None)
    refused(await browser.ask("GET", ME), 401, "token_invalid")
    refused(await late.enter(code), 403, "one_time_code_invalid")
    headers = {"authorization": f"Bearer {token['token']}"}
    refused(await hub.stranger.ask("GET", PEOPLE, headers=headers), 401, "token_invalid")
    assert (await plain.get(ME))["handle"] == "ada"
    assert await scope_of(await Browser(hub.port).sign_in(ada.token)) == "*"
    assert not (await set_operator(hub, "ada", operator=False))["changed"]
    lines = (await at_socket(hub.hub, "folkmoot/audit", action="account.operator_*"))["lines"]
    assert {(it["action"], it["about"]) for it in lines} == {
        ("account.operator_set", "ada"),
        ("account.operator_unset", "ada"),
    }


async def test_nobody_becomes_operator_by_registering_renaming_or_asking(hub, operator, bob):
    browser = await Browser(hub.port).sign_in(bob.token)
    # An operator's name that is free again has no rights of its own.
    done(await operator.ask("PUT", f"{ME}/handle", {"new_handle": "ada_two"}), 200)
    answer = await browser.ask("PUT", f"{ME}/handle", {"new_handle": "ada"})
    refused(answer, 409, "handle_taken")
    stranger = Browser(hub.port)
    refused(await stranger.ask("POST", PEOPLE, {"handle": "ada"}), 409, "handle_taken")
    for members in ({"operator_since": 1}, {"operator": True}):
        answer = await stranger.ask("POST", PEOPLE, {"handle": "mallory", **members})
        assert answer.status == 400, answer
        assert (await browser.ask("PATCH", ME, members)).status == 400
    done(await stranger.ask("POST", PEOPLE, {"handle": "mallory"}), 201)
    assert await scope_of(stranger) == await scope_of(browser) == "*"
    # Nobody sets it but at the socket: not even an operator's page.
    page = await Browser(hub.port).sign_in(operator.token)
    assert await scope_of(page) == OPERATING
    for who, code in ((page, "capability_denied"), (browser, "scope_missing")):
        answer = await who.ask("POST", f"{PEOPLE}/bob/operator", {"operator": True})
        refused(answer, 403, code)


SET_UP = "/v1/set-up"


async def test_the_link_makes_the_first_account_an_operators_and_nobody_elses(hub, clock, log):
    secret = await hub.hub.accounts.set_up_secret()
    first, second = Browser(hub.port), Browser(hub.port)
    given = {"secret": secret, "handle": "ada"}
    # No page of another origin does so, and no guess does.
    answer = await first.ask("POST", SET_UP, given, origin="http://evil.example")
    refused(answer, 403, "origin_not_allowed")
    for wrong in ("", "x", secret[:-2], "A" * len(secret), secret.swapcase()):
        answer = await first.ask("POST", SET_UP, {**given, "secret": wrong})
        refused(answer, 403, "set_up_invalid")
    refused(await first.ask("POST", SET_UP, {**given, "handle": "!"}), 400, "handle_invalid")
    made = done(await first.ask("POST", SET_UP, given), 201)
    assert (made["handle"], await scope_of(first)) == ("ada", OPERATING)
    assert len((await first.get(PEOPLE))["people"]) == 1
    # Once there is an account the link is nothing, for the same name or another.
    for handle in ("ada", "mallory"):
        refused(
            await second.ask("POST", SET_UP, {"secret": secret, "handle": handle}),
            403,
            "set_up_invalid",
        )
    assert await hub.hub.accounts.set_up_secret() == ""
    done(await second.ask("POST", PEOPLE, {"handle": "mallory"}), 201)
    assert await scope_of(second) == "*"
    text = log.getvalue()
    assert "hub.set_up" in text
    assert secret not in text
    rows = await hub.hub.store.read(lambda tx: tx.fetch("SELECT * FROM meta"))
    assert secret not in repr(rows)


async def test_whoever_registers_first_without_the_link_is_no_operator_and_ends_it(hub):
    secret = await hub.hub.accounts.set_up_secret()
    browser = Browser(hub.port)
    done(await browser.ask("POST", PEOPLE, {"handle": "mallory"}), 201)
    assert await scope_of(browser) == "*"
    answer = await browser.ask("POST", SET_UP, {"secret": secret, "handle": "eve"})
    refused(answer, 403, "set_up_invalid")


async def test_of_many_who_set_up_a_hub_at_once_one_does(hub):
    secret = await hub.hub.accounts.set_up_secret()
    browsers = [Browser(hub.port) for _ in range(8)]
    answers = await asyncio.gather(
        *(
            browser.ask("POST", SET_UP, {"secret": secret, "handle": f"person{number}"})
            for number, browser in enumerate(browsers)
        )
    )
    assert sorted(it.status for it in answers) == [201, *[403] * 7]
    assert await hub.hub.accounts.count() == 1


async def test_a_link_is_good_for_a_day(hub, clock):
    secret = await hub.hub.accounts.set_up_secret()
    clock.advance(86_401)
    answer = await Browser(hub.port).ask("POST", SET_UP, {"secret": secret, "handle": "ada"})
    refused(answer, 403, "set_up_invalid")


@pytest.mark.settings(rate_limits="on")
async def test_guesses_at_the_link_are_counted(hub):
    browser = Browser(hub.port)
    given = {"secret": await hub.hub.accounts.set_up_secret(), "handle": "ada"}
    statuses = []
    while 429 not in statuses:
        answer = await browser.ask("POST", SET_UP, {**given, "secret": "wrong"})
        statuses.append(answer.status)
        assert len(statuses) < 100
    assert set(statuses) == {403, 429}


@pytest.mark.settings(registration="closed")
async def test_a_closed_hub_is_set_up(hub):
    given = {"secret": await hub.hub.accounts.set_up_secret(), "handle": "ada"}
    done(await Browser(hub.port).ask("POST", SET_UP, given), 201)
