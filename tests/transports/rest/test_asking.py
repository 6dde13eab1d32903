"""Programs ask people before they do something: who sees it, who decides, and what is bound."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import msgspec
import pytest

from folkmoot.asks.limits import MAX_OPEN
from folkmoot.asks.machine import StoredAsk, Wish, bound
from folkmoot.asks.receipts import check
from folkmoot.cli.client import HubClient
from folkmoot.client import Asks
from folkmoot.core import errors as e
from tests.clocks import Later
from tests.passkeys import Authenticator
from tests.transports.events.support import following
from tests.transports.rest.support import Asker, done, refused
from tests.transports.rest.test_passkeys import add
from tests.transports.rest.test_sessions import Browser

ASKS = "/v1/asks"
CALL: dict[str, Any] = {"tool": "shell", "arguments": {"command": "make deploy"}, "why": "Tested."}


@pytest.fixture
def clock():
    return Later()


@pytest.fixture
async def browser(hub, ada):
    return await Browser(hub.port).sign_in(ada.token)


async def ask(who: Asker, **more: Any) -> str:
    answer = await who.ask("POST", ASKS, {**CALL, **more})
    made = done(answer, 201)
    assert answer.headers["location"] == f"{ASKS}/{made['ask_id']}"
    assert made["status"] == "asked"
    return str(made["ask_id"])


async def waiting(who: Any) -> list[dict[str, Any]]:
    return list((await who.get(f"{ASKS}?kind=call"))["asks"])


def approving(id_: str, verdict: str = "approve") -> str:
    return f"{ASKS}/{id_}/{verdict}"


async def present(
    browser: Browser, authenticator: Authenticator, id_: str, verdict: str = "approve",
    reason: str = "",
) -> dict[str, str]:  # fmt: skip
    """What a page sends once the passkey has signed a decision."""
    arguments = {"ask": id_, "verdict": verdict, "reason": reason}
    asked = {"operation": "ask/decide", "arguments": arguments}
    begun = done(await browser.ask("POST", "/v1/me/passkeys/presence", asked), 200)
    signed = authenticator.sign(begun["options"])
    return {"folkmoot_ticket": begun["ticket"], "folkmoot_passkey": signed}


async def test_someone_else_sees_exactly_what_is_asked_and_approves_it_once(ada, bob):
    id_ = await ask(ada, to="bob")
    (shown,) = await waiting(bob)
    assert (shown["id"], shown["kind"], shown["what"]) == (f"call:{id_}", "call", "shell")
    assert (shown["by"], shown["risk"], shown["may"]) == ("ada", "unknown", ["approve", "reject"])
    assert shown["call"]["arguments"] == CALL["arguments"]
    assert shown["call"]["why"] == CALL["why"]
    assert await waiting(ada) == []
    waits = asyncio.ensure_future(ada.get(f"{ASKS}/{id_}?wait=20"))
    approved = done(await bob.ask("POST", approving(id_), {"reason": "Go on."}), 200)
    assert (approved["state"], approved["digest"]) == ("approved", shown["call"]["digest"])
    told = await asyncio.wait_for(waits, 5)
    assert (told["state"], told["reason"], told["presence"]) == ("approved", "Go on.", None)
    again = refused(await bob.ask("POST", approving(id_, "reject"), {"reason": "No."}), 409,
                    "ask_closed")  # fmt: skip
    assert again["state"] == "approved"
    assert await waiting(bob) == []
    (noted,) = (await bob.get("/v1/decisions"))["decisions"]
    assert (noted["kind"], noted["decision"], noted["what"]) == ("call", "approved", "shell")
    assert noted["by"] == "ada"


async def test_ones_own_program_is_answered_by_oneself_with_a_passkey_alone(hub, ada, browser, log):
    authenticator, _ = await add(browser)
    id_ = await ask(ada)
    (shown,) = await waiting(browser)
    assert shown["call"]["to"] == "ada"
    # The token that asked, another one of the account, and a browser that is only left open.
    made = done(await ada.ask("POST", "/v1/me/credentials", {"label": "other"}), 201)
    other = Asker(hub.port, made["token"], "ada")
    for who in (ada, other):
        refused(await who.ask("POST", approving(id_), {}), 403, "person_needed")
        given = await present(browser, authenticator, id_)
        sent = {name.replace("_", "-"): value for name, value in given.items()}
        refused(await who.ask("POST", approving(id_), {}, headers=sent), 403, "person_needed")
    refused(await browser.ask("POST", approving(id_), {}), 403, "confirmation_invalid")
    given = await present(browser, authenticator, id_)
    approved = done(await browser.ask("POST", approving(id_), {}, **given), 200)
    assert (approved["state"], approved["presence"]) == ("approved", "passkey")
    assert (await ada.get(f"{ASKS}/{id_}"))["state"] == "approved"
    assert "ask.decided" in log.getvalue()
    assert CALL["arguments"]["command"] not in log.getvalue()


async def test_what_a_passkey_signed_decides_nothing_else(ada, browser):
    authenticator, _ = await add(browser)
    first, second = await ask(ada), await ask(ada)
    given = await present(browser, authenticator, first)
    for path, content in (
        (approving(second), {}),
        (approving(first, "reject"), {"reason": ""}),
        (approving(first), {"reason": "Something else."}),
    ):
        refused(await browser.ask("POST", path, content, **given), 403, "passkey_invalid")
    given = await present(browser, authenticator, first)
    done(await browser.ask("POST", approving(first), {}, **given), 200)
    refused(await browser.ask("POST", approving(first), {}, **given), 403, "passkey_invalid")


async def test_without_a_passkey_a_token_once_more_will_do_but_not_the_one_that_asked(
    hub, ada, browser
):
    made = done(await ada.ask("POST", "/v1/me/credentials", {"label": "agent"}), 201)
    agent = Asker(hub.port, made["token"], "ada")
    theirs = await Browser(hub.port).sign_in(agent.token)
    id_ = await ask(agent)
    told = await theirs.ask("POST", approving(id_), {}, folkmoot_confirm=agent.token)
    refused(told, 403, "person_needed")
    approved = await browser.ask("POST", approving(id_), {}, folkmoot_confirm=ada.token)
    assert done(approved, 200)["presence"] == "token"


async def test_others_neither_see_an_ask_nor_decide_it(ada, bob, cyd):
    id_ = await ask(ada, to="bob")
    refused(await cyd.ask("GET", f"{ASKS}/{id_}"), 404, "ask_unknown")
    refused(await cyd.ask("POST", approving(id_), {}), 404, "ask_unknown")
    refused(await ada.ask("POST", approving(id_), {}), 403, "ask_not_yours")
    refused(await bob.ask("DELETE", f"{ASKS}/{id_}"), 403, "ask_not_yours")
    assert done(await ada.ask("DELETE", f"{ASKS}/{id_}"), 200)["state"] == "withdrawn"
    refused(await bob.ask("POST", approving(id_), {}), 409, "ask_closed")


async def test_whoever_takes_no_mail_from_someone_is_not_asked_by_them(ada, bob):
    done(await bob.ask("PUT", "/v1/blocks/ada"), 200)
    refused(await ada.ask("POST", ASKS, {**CALL, "to": "bob"}), 403, "cannot_send")
    refused(await ada.ask("POST", ASKS, {**CALL, "to": "nobody1"}), 404, "user_not_found")


async def test_an_ask_ends_by_itself(ada, bob, clock):
    id_ = await ask(ada, to="bob", expires_in=10)
    clock.ahead += 11
    assert await waiting(bob) == []
    assert (await ada.get(f"{ASKS}/{id_}?wait=20"))["state"] == "expired"
    told = refused(await bob.ask("POST", approving(id_), {}), 409, "ask_closed")
    assert told["message"] == "Nobody decided in time."


async def test_a_program_that_asks_too_much_is_refused_and_others_are_not(ada, bob):
    for _ in range(MAX_OPEN):
        await ask(ada, to="bob")
    refused(await ada.ask("POST", ASKS, {**CALL, "to": "bob"}), 429, "too_many_asks")
    await ask(bob, to="ada")
    big = {"text": "x" * 70_000}
    refused(await bob.ask("POST", ASKS, {**CALL, "arguments": big}), 400, "argument_invalid")


async def test_both_sides_are_told_by_an_event(ada, bob):
    async with following(ada) as asker, following(bob) as decider:
        id_ = await ask(ada, to="bob")
        for told in (asker, decider):
            assert await told.event() == ("ask.changed", {"id": id_, "change": "made"})
        done(await bob.ask("POST", approving(id_, "reject"), {"reason": "No."}), 200)
        assert await asker.event() == ("ask.changed", {"id": id_, "change": "ended"})


async def test_a_model_asks_and_reads_the_answer(hub, ada, bob):
    model = HubClient(hub.hub.base_url, ada.token)
    asked = await asyncio.to_thread(model.call, "ask/create", {**CALL, "to": "bob"})
    id_ = asked["ask_id"]
    done(await bob.ask("POST", approving(id_, "reject"), {"reason": "Not today."}), 200)
    told = await asyncio.to_thread(model.call, "ask/result", {"ask": id_, "wait": 20})
    assert (told["state"], told["reason"]) == ("rejected", "Not today.")


async def test_a_program_goes_on_once_someone_has_decided_and_withdraws_what_it_gives_up(
    hub, ada, bob
):
    asks = Asks(hub.hub.base_url, ada.token)
    asking = asyncio.ensure_future(asks.ask("shell", {"command": "ls"}, why="A", to="bob"))
    while not (waits := await waiting(bob)):  # noqa: ASYNC110 - it is in a thread
        await asyncio.sleep(0.01)
    done(await bob.ask("POST", approving(waits[0]["call"]["id"]), {}), 200)
    said = await asyncio.wait_for(asking, 10)
    assert (said.state, said.by, said.to) == ("approved", "ada", "bob")
    told = await hub.stranger.get("/.well-known/jwks.json")
    claims = check(said.receipt, told, "shell", {"command": "ls"}, time.time())
    assert (claims["iss"], claims["presence"]) == (hub.hub.base_url, "none")
    with pytest.raises(e.ReceiptInvalid):
        check(said.receipt, told, "shell", {"command": "rm"}, time.time())
    for edits, state, command in ((True, "approved", "ls -l"), (False, "edited", "ls")):
        asking = asyncio.ensure_future(asks.ask("shell", {"command": "ls"}, to="bob", edits=edits))
        while not (waits := await waiting(bob)):  # noqa: ASYNC110 - it is in a thread
            await asyncio.sleep(0.01)
        path = approving(waits[0]["call"]["id"], "edit")
        done(await bob.ask("POST", path, {"arguments": {"command": "ls -l"}}), 200)
        said = await asyncio.wait_for(asking, 10)
        assert (said.state, said.arguments) == (state, {"command": command})
    given_up = asyncio.ensure_future(asks.ask("shell", to="bob"))
    while not await waiting(bob):  # noqa: ASYNC110 - it is in a thread
        await asyncio.sleep(0.01)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert await waiting(bob) == []


async def test_a_program_that_is_cancelled_again_while_it_gives_up_still_withdraws_its_ask(
    hub, ada, bob
):
    asks = Asks(hub.hub.base_url, ada.token)
    create, go_on, made = asks.hub.create_ask, threading.Event(), threading.Event()

    def slowly(*args, **options):
        assert go_on.wait(10)
        try:
            return create(*args, **options)
        finally:
            made.set()

    asks.hub.create_ask = slowly
    given_up = asyncio.ensure_future(asks.ask("shell", to="bob"))
    for _ in range(3):
        await asyncio.sleep(0.01)
        given_up.cancel()
    await asyncio.sleep(0.01)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert await asyncio.to_thread(made.wait, 10)
    assert await waiting(bob) == []


def test_the_digest_covers_everything_but_the_order_of_members():
    wish = Wish(tool="shell", arguments={"a": 1, "b": {"c": 2, "d": 3}}, why="", until=10.5)
    turned = Wish(tool="shell", arguments={"b": {"d": 3, "c": 2}, "a": 1}, why="?", until=10.9)
    same = bound("ask_1", "ann", "bob", wish)
    assert bound("ask_1", "ann", "bob", turned) == same
    more = msgspec.structs.replace
    others = {
        bound("ask_2", "ann", "bob", wish),
        bound("ask_1", "eve", "bob", wish),
        bound("ask_1", "ann", "eve", wish),
        bound("ask_1", "ann", "bob", more(wish, tool="s")),
        bound("ask_1", "ann", "bob", more(wish, arguments={"a": 1})),
        bound("ask_1", "ann", "bob", more(wish, until=11)),
    }
    assert same not in others
    assert len(others) == 6


def test_what_has_ended_stays_as_it_is():
    made = StoredAsk(
        id="ask_1", asker_id="a", credential_id="", client="", decider_id="b", tool="t",
        bound=b"{}", why="", at=0, until=10,
    )  # fmt: skip
    made.check_open(9.9)
    with pytest.raises(e.AskClosed):
        made.check_open(10)
