from __future__ import annotations

import pytest

from tests.harness import Answer
from tests.transports.rest.support import ROOMS, Asker, House, chat, done, house, refused
from tests.transports.rest.test_sessions import SESSION, Browser

WRONG = "gi_" + "0" * 64


async def invited(host: Asker, room: str = "planning", guest: str = "grace") -> str:
    """The token of a guest's invitation."""
    made = done(await host.ask("POST", f"{ROOMS}/{room}/invites", {"guest": guest}), 201)
    assert (made["room"], made["guest"], made["expires_at"][-1]) == (room, guest, "Z")
    token: str = made["token"]
    return token


async def exchange(here: House, token: object, room: str = "planning") -> Answer:
    return await here.stranger.ask("POST", f"{ROOMS}/{room}/guests", {"token": token})


@pytest.mark.requirement("room.guest-once")
async def test_an_invitation_is_exchanged_once_for_a_credential_of_that_room(hub, ada):
    await ada.create("planning", access="private")
    await ada.create("other")
    token = await invited(ada)
    # It is no credential itself.
    answer = await Asker(hub.port, token).ask("GET", f"{ROOMS}/planning/messages")
    refused(answer, 401, "token_invalid")
    told = done(await exchange(hub, token), 201)
    assert (told["guest"], told["room"]) == ("grace", "planning")
    refused(await exchange(hub, token), 401, "invitation_invalid")
    guest = Asker(hub.port, told["credential"])
    assert (await guest.say("planning", "Thank you!"))["from"] == "grace"
    assert [room["name"] for room in (await guest.get(ROOMS))["rooms"]] == ["planning"]
    # Outside of its room there is nothing for it, not even a room that is open to all.
    for method, path, content, status, code in (
        ("GET", "/other", None, 404, "room_not_found"),
        ("GET", "/other/messages", None, 404, "room_not_found"),
        ("POST", "/other/messages", chat("Hi"), 404, "room_not_found"),
        ("POST", "", {"name": "mine"}, 403, "room_forbidden"),
        ("PATCH", "/planning", {"access": "open"}, 403, "room_forbidden"),
        ("DELETE", "/planning", None, 403, "room_forbidden"),
        ("POST", "/planning/invites", {"guest": "friend"}, 403, "capability_denied"),
    ):
        refused(await guest.ask(method, f"{ROOMS}{path}", content), status, code)
    for path in ("me", "me/credentials", "me/export", "messages", "people/ada"):
        refused(await guest.ask("GET", f"/v1/{path}"), 403, "capability_denied")
    refused(await guest.ask("POST", "/v1/me/credentials", {}), 403, "capability_denied")


async def test_a_wrong_invitation_says_nothing_of_the_room(hub, ada):
    await ada.create("planning", access="private")
    await ada.create("other")
    elsewhere = await invited(ada, "other")
    answers = [await exchange(hub, each) for each in (WRONG, elsewhere, ada.token, "anything")]
    answers.append(await exchange(hub, WRONG, "there-is-none"))
    assert len({(answer.status, answer.body) for answer in answers}) == 1
    refused(answers[0], 401, "invitation_invalid")
    assert answers[0].headers["www-authenticate"] == "Bearer"
    # An attempt at the wrong door used nothing up.
    done(await exchange(hub, elsewhere, "other"), 201)


@pytest.mark.settings(rate_limits="on", rates={"guest_per_hour": 2})
async def test_wrong_invitations_are_limited_by_address_and_right_ones_are_not(hub, ada, planning):
    for name in ("grace", "heidi", "ivan"):
        done(await exchange(hub, await invited(ada, guest=name)), 201)
    token = await invited(ada, guest="judy")
    for _ in range(2):
        refused(await exchange(hub, WRONG), 401, "invitation_invalid")
    answer = await exchange(hub, token)
    told = refused(answer, 429, "rate_limited")
    assert answer.headers["retry-after"] == str(told["retry_after"])


async def test_an_exchange_takes_one_token_and_nothing_else(hub):
    more = {"token": WRONG, "name": "root"}
    for content in ({}, *({"token": it} for it in (None, 7, "", "x" * 200)), more):
        answer = await hub.stranger.ask("POST", f"{ROOMS}/planning/guests", content)
        refused(answer, 400, "argument_invalid")
        assert WRONG not in answer.text


@pytest.mark.requirement("room.guest-secret", "log.tokens-redacted")
async def test_neither_token_is_in_the_log_the_history_or_the_database(tmp_path, log):
    async with house(tmp_path, log={"requests": "all", "level": "debug"}) as here:
        ada = await here.person("ada")
        await ada.create("planning")
        token = await invited(ada)
        credential = done(await exchange(here, token), 201)["credential"]
        messages = f"{ROOMS}/planning/messages"
        await Asker(here.port, credential).ask("GET", messages)
        await here.stranger.ask("GET", f"{messages}?token={credential}")
        refused(await exchange(here, token), 401, "invitation_invalid")
        history = (await ada.ask("GET", messages)).text
        assert "room.invite" in history
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert log.getvalue().count("/guests") >= 2
    for secret in (token[3:], credential[3:]):
        assert secret not in history + log.getvalue()
        assert secret.encode() not in files


async def test_a_browser_enters_one_room_as_a_guest_and_has_nothing_else(hub, ada):
    await ada.create("planning", access="private")
    await ada.create("other")
    token = await invited(ada)
    enter = f"{ROOMS}/planning/guests"
    browser, other = Browser(hub.port), Browser(hub.port)
    # A page of another origin uses nothing up.
    evil = {"origin": "http://evil.example", "sec_fetch_site": "cross-site"}
    assert (await browser.ask("POST", enter, {"token": token}, **evil)).status == 403
    # Nor does someone who is signed in, and would lose that.
    await other.sign_in(ada.token)
    refused(await other.ask("POST", enter, {"token": token}), 403, "room_forbidden")
    answer = await browser.ask("POST", enter, {"token": token})
    assert done(answer, 201) == {"credential": None, "guest": "grace", "room": "planning"}
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    refused(await exchange(hub, token), 401, "invitation_invalid")
    session = await browser.get(SESSION)
    scope = "rooms:planning rooms.manage:planning decide:planning"
    told = {"handle": None, "guest": "grace", "room": "planning", "scope": scope}
    assert session == {**session, **told}
    post = f"{ROOMS}/planning/messages"
    assert done(await browser.ask("POST", post, chat("Hi")), 201)["from"] == "grace"
    assert (await browser.ask("POST", post, chat("Hi"), **evil)).status == 403
    for path in ("other", "other/messages"):
        assert (await browser.ask("GET", f"{ROOMS}/{path}")).status == 404
    for path in ("rooms/planning/invites", "me", "threads", "asks", "audit", "servers"):
        assert (await browser.ask("GET", f"/v1/{path}")).status == 403, path
    # Another invitation does not take the place of the first.
    more = await invited(ada, "other", "gus")
    elsewhere = f"{ROOMS}/other/guests", {"token": more}
    refused(await browser.ask("POST", *elsewhere), 403, "room_forbidden")
    done(await ada.ask("DELETE", f"{ROOMS}/planning/participants/grace"), 200)
    refused(await browser.ask("GET", f"{ROOMS}/planning"), 401, "token_invalid")
    assert (await browser.get(SESSION))["guest"] is None
    # Whose visit is over can be a guest elsewhere.
    done(await browser.ask("POST", *elsewhere), 201)
    done(await browser.ask("DELETE", SESSION), 204)
    assert browser.cookie == ""
