"""Apps with access tokens, from outside: what goes on with the next token, and what ends it all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from folkmoot.accounts import Account, Pair
from folkmoot.core.closecodes import CloseCode
from tests.apps import CLIENT, SCOPE, connect
from tests.harness import Answer, ask, reached
from tests.interaction.room_client import address, joined
from tests.interaction.room_client import connect as websocket
from tests.interaction.test_invalid_tokens import to_the_end
from tests.mcp_harness import INITIALIZE, Meeting, both_eras, meeting, modern
from tests.transports.events.support import following
from tests.transports.mcp.gateway_support import Wire, payload, session_stream, wired
from tests.transports.rest.support import ROOMS, Asker

pytestmark = [pytest.mark.settings(sign_in={"access_seconds": 900}), pytest.mark.timeout(20)]

CHALLENGE = 'Bearer error="invalid_token"'
PING = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
LIFE = 900
UNKNOWN = CloseCode.NOT_AUTHENTICATED


class App:
    """An app that someone has connected; it has the access token that it got last."""

    def __init__(self, there: Meeting, account: Account, pair: Pair) -> None:
        self.there, self.account, self.pair = there, account, pair

    @property
    def token(self) -> str:
        return self.pair.access_token

    async def refresh(self, **wanted: Any) -> str:
        """The next access token."""
        apps = self.there.hub.accounts.apps
        self.pair = await apps.refresh(self.pair.refresh_token, client_id=CLIENT, **wanted)
        return self.token

    async def revoke(self) -> None:
        await self.there.hub.accounts.apps.revoke(self.pair.refresh_token, client_id=CLIENT)

    async def expire(self, clock: Any) -> None:
        """Let the access token expire, and have it removed."""
        clock.ahead += LIFE
        await self.there.hub.accounts.authentication.upkeep()


async def connected(there: Meeting, handle: str = "", account: Account | None = None) -> App:
    accounts = there.hub.accounts
    account = account or (await accounts.register(handle)).account
    return App(there, account, await connect(accounts, account, scope=SCOPE + " account.read"))


def unauthorized(answer: Answer) -> bool:
    """Whether a request was answered 401, with the challenge and not for its session."""
    return (
        answer.status == 401
        and answer.headers["www-authenticate"].startswith(CHALLENGE)
        and answer.json()["error"]["data"]["code"] == "token_invalid"
        and "mcp-session-id" not in answer.headers
    )


async def turned_away(url: str, headers: dict[str, str]) -> int:
    """The code with which a WebSocket is not let in."""
    async with websocket(url, additional_headers=headers) as socket:
        await socket.wait_closed()
    return int(socket.close_code or 0)


async def whoami(wire: Wire) -> str:
    told = await wire.ask("tools/call", {"name": "msg_whoami", "arguments": {}})
    return str(payload(told["result"])["handle"])


async def test_a_session_goes_on_with_the_next_access_token_of_its_grant_and_no_other(hub, clock):
    app = await connected(hub, "ada")
    first = app.token
    wire = await wired(hub, first)
    assert await whoami(wire) == "ada"
    await app.expire(clock)
    assert unauthorized(await wire.post(PING)), "not 404: the client would drop its session"
    assert unauthorized(await hub.ask("GET", headers=wire.headers({})))
    wire.token = await app.refresh()
    assert await whoami(wire) == "ada"
    same, other = await connected(hub, account=app.account), await connected(hub, "eve")
    own = await hub.hub.accounts.authentication.create(app.account)
    for token in (same.token, other.token, own.token):
        wire.token = token
        assert (await wire.post(PING)).status == 404
    wire.token = app.token
    assert await whoami(wire) == "ada"
    await app.revoke()
    assert unauthorized(await wire.post(PING))
    assert hub.hub.mcp.open_sessions == 1


async def test_a_session_goes_on_after_a_restart_with_the_next_access_token(tmp_path):
    async with meeting(tmp_path) as there:
        app = await connected(there, "ada")
        wire = await wired(there, app.token)
        await wire.ask("resources/subscribe", {"uri": "mmp://mailboxes/inbox"})
    async with meeting(tmp_path) as there:
        app.there = there
        stranger = await connected(there, account=app.account)
        wire = Wire(there, stranger.token, wire.session)
        assert (await wire.post(PING)).status == 404
        wire.token = await app.refresh()
        assert await whoami(wire) == "ada"
        await wire.leave()


@both_eras
@pytest.mark.requirement("sign-in.challenge")
async def test_a_dead_access_token_is_401_with_the_challenge_whatever_is_asked(hub):
    app, forms = await connected(hub, "ada"), {}
    for method in ("server/discover", "tools/list", "ping"):
        forms[method] = modern(method) if hub.era == "stateless" else ({**PING, "method": method},)
    forms["initialize"] = (INITIALIZE,)
    await app.revoke()
    for token in (app.token, "at_" + "0" * 64, "at_cut", "rt_" + "0" * 64, app.pair.refresh_token):
        for message, *headers in forms.values():
            signed = {"authorization": f"Bearer {token}", **(headers[0] if headers else {})}
            answer = await hub.post(message, headers=signed)
            assert unauthorized(answer), (token, message)
            assert answer.json()["id"] == message["id"]
    for body in (b"", b"[]", b"nonsense"):
        assert unauthorized(await hub.post(body, headers=signed))
    assert unauthorized(await hub.ask("GET", headers=signed))
    assert unauthorized(await hub.ask("DELETE", headers=signed))
    assert hub.hub.mcp.open_sessions == 0


async def test_nothing_but_tokens_opens_an_account_as_a_bearer_on_any_way(hub):
    app = await connected(hub, "ada")
    ada = app.account
    browser = await hub.hub.accounts.browsers.open(ada.id)
    await hub.hub.accounts.apps.refresh(app.pair.refresh_token, client_id=CLIENT)
    asked, named = modern("tools/call", name="msg_whoami", arguments={})
    for secret in (app.pair.refresh_token, browser.token, app.token.replace("at_", "sk_")):
        signed = {"authorization": f"Bearer {secret}"}
        assert (await hub.post(asked, headers=named | signed)).status == 401
        assert (await ask(hub.port, "/v1/me", headers=signed)).status == 401
        assert await turned_away(address(hub.port), signed) == UNKNOWN
    where = f"localhost:{hub.port}"
    for secret in (app.pair.refresh_token, app.token):
        cookie = {"cookie": f"folkmoot_{hub.port}={secret}", "host": where}
        site = {"sec-fetch-site": "same-origin"}
        assert (await ask(hub.port, "/v1/me", headers=cookie | site)).status == 401
        page = {"host": where, "origin": f"http://{where}", "folkmoot-page": "1"}
        body = b'{"token":"%b"}' % secret.encode()
        given = {"content-type": "application/json", **page}
        signed_in = await ask(hub.port, "/v1/session", method="POST", headers=given, body=body)
        assert (signed_in.status, "set-cookie" in signed_in.headers) == (401, False)


@pytest.mark.requirement("sign-in.header-only")
async def test_an_access_token_in_a_url_is_taken_on_no_way(hub):
    app = await connected(hub, "ada")
    signed, query = {"authorization": f"Bearer {app.token}"}, f"?token={app.token}"
    asked, named = modern("tools/call", name="msg_whoami", arguments={})
    for headers in ({}, signed):
        assert unauthorized(await hub.post(asked, query=query, headers=named | headers))
        assert unauthorized(await hub.post(INITIALIZE, query=query, headers=headers))
        assert (await ask(hub.port, f"/v1/me{query}", headers=headers)).status == 401
        assert await turned_away(address(hub.port, app.token), headers) == UNKNOWN
    assert (await hub.post(asked, headers=named | signed)).status == 200
    assert (await ask(hub.port, "/v1/me", headers=signed)).status == 200


@both_eras
@pytest.mark.requirement("sign-in.sessions-of-grants")
async def test_expiry_ends_nothing_that_is_open_and_the_end_of_the_grant_ends_it_all(hub, clock):
    app, other = await connected(hub, "ada"), await connected(hub, "eve")
    asker = Asker(hub.port, app.token, "ada")
    await asker.create("tea")
    session = await wired(hub, app.token, "handshake")
    wire = session if hub.era == "handshake" else await wired(hub, app.token)
    listener = await wired(hub, app.token, "stateless")
    listen = listener.message(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 1, None
    )

    def waiting(asking: Wire) -> asyncio.Task[Any]:
        inbox = {"name": "msg_inbox", "arguments": {"wait": 55}}
        return asyncio.create_task(asking.ask("tools/call", inbox, id_=7))

    async with (
        joined(hub.port, app.token, "tea") as seat,
        following(asker) as events,
        session_stream(session) as told,
        listener.streamed(listen) as heard,
    ):
        assert "acknowledged" in str(await anext(heard))
        mail = waiting(wire)
        room = asyncio.create_task(asker.ask("GET", await unread(asker)))
        await reached(lambda: len(hub.hub.mcp._exchanges) == 3)
        await reached(lambda: len(hub.hub.rest._waiting._callers) == 2)
        ended = asyncio.gather(to_the_end(told), to_the_end(heard))
        await app.expire(clock)
        refused = await asker.ask("GET", ROOMS)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, CHALLENGE)
        assert "access token" in refused.json()["error"]["message"]
        # Each of them hears what happens after its token is gone.
        await hub.hub.mail.send(other.account, "ada", body="hello")
        assert "hello" in str(payload((await mail)["result"]))
        while (await events.event())[0] != "mail.received":
            pass
        asker.token = wire.token = await app.refresh()
        await asker.say("tea", "still here")
        await seat.kind("chat.message")
        assert (await room).status == 200
        assert not ended.done()
        mail = waiting(wire)
        room = asyncio.create_task(asker.ask("GET", await unread(asker)))
        await reached(lambda: len(hub.hub.rest._waiting._callers) == 2)
        await reached(lambda: len(hub.hub.mcp._exchanges) == 3)
        await app.revoke()
        assert "The access token is not valid" in str(await mail)
        assert (await room).status == 401
        assert await seat.closed() == UNKNOWN
        assert await events.ended()
        await ended
    assert (await Asker(hub.port, await other.refresh()).ask("GET", ROOMS)).status == 200


async def unread(asker: Asker) -> str:
    """Where to wait for what is said next in the room."""
    last = (await asker.get(f"{ROOMS}/tea/messages"))["last_seq"]
    return f"{ROOMS}/tea/messages?after={last}&wait=55"


@pytest.mark.one_node("a stream of events is resumed at its node")
async def test_a_stream_of_events_is_resumed_with_the_next_token_of_the_same_scope_alone(hub):
    app = await connected(hub, "ada")
    asker = Asker(hub.port, app.token, "ada")
    await asker.create("tea")
    async with following(asker) as events:
        await asker.say("tea", "one")
        while (await events.event())[0] != "room.message":
            pass
    narrow = Asker(hub.port, await app.refresh(scope="mail.read"), "ada")
    asker.token = await app.refresh()
    await asker.say("tea", "two")
    async with following(narrow, events.last) as less:
        assert (await less.event())[0] == "reload", "it begins anew"
    async with following(asker, events.last) as more:
        assert (await more.event())[0] == "room.message"


async def test_a_narrower_token_of_a_grant_does_no_more_than_its_scope_in_the_same_session(hub):
    app = await connected(hub, "ada")
    wire = await wired(hub, app.token)
    assert "messages" in payload((await called(wire))["result"])
    wire.token = await app.refresh(scope="contacts")
    assert payload((await called(wire))["result"])["code"] == "scope_missing"
    listed = (await Asker(hub.port, await app.refresh()).get("/v1/me/credentials"))["tokens"]
    assert [(it["kind"], it["label"]) for it in listed if it["current"]] == [("app", "Assistant")]
    assert len(listed) == 3, "the first token, the browser and the app"


async def called(wire: Wire) -> Any:
    return await wire.ask("tools/call", {"name": "msg_inbox", "arguments": {}})
