"""`GET /v1/events` of a real hub, over real connections."""

from __future__ import annotations

import pytest

from folkmoot.core.scopes import OPERATE
from folkmoot.datafolder import Paths
from tests.harness import ask
from tests.transports.events.support import EVENTS, Source, connect, following, refusal
from tests.transports.rest.support import Asker, chat, house, refused


async def test_events_come_as_they_happen_and_those_that_were_missed_after_a_break(hub, ann, bob):
    async with following(ann) as source, following(bob) as bobs:
        sent = await bob.did("POST", "/v1/messages", {"to": "ann", "body": "hush"})
        ids = {name: sent[name] for name in ("message_id", "thread_id")}
        received = {**ids, "urgent": False, "muted": False}
        assert await source.event() == ("mail.received", received)
        assert (await bobs.event())[0] == "mail.sent"
        await ann.did("PATCH", "/v1/me", {"display_name": "Ann"})
        changed = {"handle": "ann", "change": "profile"}
        assert await source.event() == ("account.changed", changed)
        await bob.create("square")
        assert await bobs.names(1) == ["room.membership"]
        await bob.say("square", "hush")
        while (told := await bobs.event())[0] != "room.message":
            assert told[0] == "room.presence"
        assert told[1]["room"] == "square"
        # Nothing of the room is hers to hear until she is in it.
        await ann.say("square", "hello")
        member = {"room": "square", "state": "member"}
        assert await source.event() == ("room.membership", member)
        assert (await source.event())[0] == "room.message"
        last = source.last
    await bob.did("POST", "/v1/messages", {"to": "ann", "body": "hush"})
    await bob.say("square", "hush")
    async with following(ann, last) as source:
        assert await source.names(2) == ["mail.received", "room.message"]
    async with following(ann, "made-up-1") as source:
        assert await source.event() == ("reload", {"reason": "gap"})
    async with following(bob, last) as source:
        assert await source.event() == ("reload", {"reason": "gap"})
    text = (await ask(hub.port, "/metrics")).text
    assert "folkmoot_event_streams_resumed_total 1.0" in text
    assert 'folkmoot_events_told_total{event="mail.received"} 2.0' in text


async def test_a_token_hears_what_its_scope_has_and_its_stream_ends_with_it(hub, ann, bob):
    for room in ("square", "garden"):
        await ann.create(room)
    narrow = {"label": "bot", "scope": "rooms:square"}
    made = await ann.did("POST", "/v1/me/credentials", narrow)
    bot = Asker(hub.port, made["token"])
    async with following(bot) as bots, following(ann) as source:
        await bob.did("POST", "/v1/messages", {"to": "ann", "body": "hush"})
        await ann.say("garden", "hush")
        await ann.say("square", "hush")
        assert await source.names(3) == ["mail.received", "room.message", "room.message"]
        told = await bots.event()
        assert (told[0], told[1]["room"]) == ("room.message", "square")
        for room in ("garden", "square"):
            await ann.did("PATCH", f"/v1/rooms/{room}", {"access": "invite"})
            told = await source.event()
            assert told == ("room.changed", {"room": room, "change": "settings"})
        assert await bots.event() == told
        await ann.did("DELETE", f"/v1/me/credentials/{made['id']}")
        assert await bots.ended()
        ended = {"id": made["id"], "change": "ended"}
        assert await source.event() == ("tokens.changed", ended)
        refused(await refusal(bot, bots.last), 401, "token_invalid")
        # A look at the head opens nothing.
        assert (await ann.ask("HEAD", EVENTS)).status == 200
        await ann.did("DELETE", "/v1/me?confirm=ann")
        assert await source.ended()


async def test_a_guest_follows_its_room_until_it_is_removed_from_it(hub, ann):
    for room in ("square", "garden"):
        await ann.create(room)
    invited = await ann.did("POST", "/v1/rooms/square/invites", {"guest": "zoe"})
    token = {"token": invited["token"]}
    entered = await hub.stranger.did("POST", "/v1/rooms/square/guests", token)
    zoe = Asker(hub.port, entered["credential"])
    async with following(zoe) as source:
        await ann.say("garden", "hush")
        said = await ann.say("square", "hush")
        while (told := await source.event())[0] != "room.message":
            assert told[0] == "room.presence"
        assert told == ("room.message", {"room": "square", "seq": said["seq"], "talk": True})
        await ann.say("square", "welcome, @zoe")
        while (told := await source.event())[0] == "room.message":
            pass
        assert told == ("room.unread", {"room": "square", "change": "mention"})
        kick = chat("", kind="room.kick", payload={"participant": entered["guest"]})
        assert (await ann.post("square", kick)).status == 201
        assert await source.ended()
    refused(await refusal(zoe), 401, "token_invalid")


@pytest.mark.settings(events={"max_streams": 3, "max_streams_per_account": 2})
async def test_strangers_foreign_pages_and_too_many_are_refused(hub, ann, bob):
    refused(await refusal(hub.stranger), 401, "authentication_required")
    page = await refusal(ann, origin="https://evil.example")
    refused(page, 403, "origin_not_allowed")
    async with following(ann) as first, following(ann), following(bob):
        for who, status in ((ann, 429), (bob, 503)):
            full = await refusal(who)
            assert (full.status, "retry-after" in full.headers) == (status, True)
        # A stream that is only kept gives way to one that is asked for.
        first.close()
        while not isinstance(again := await connect(bob), Source):
            # The hub has not noticed yet that the client left.
            pass
        again.close()


async def test_a_hub_that_stops_ends_its_streams_and_the_next_one_tells_them_to_reload(tmp_path):
    async with house(tmp_path) as here:
        ann = await here.person("ann")
        source = await connect(ann)
        assert isinstance(source, Source)
        await ann.did("POST", "/v1/me/credentials", {})
        await source.event()
    assert await source.ended()
    source.close()
    async with house(tmp_path) as here:
        again = Asker(here.port, ann.token)
        async with following(again, source.last) as source:
            assert await source.event() == ("reload", {"reason": "gap"})


async def test_an_operator_hears_of_servers_on_the_hubs_socket_and_by_a_token_that_operates(hub):
    ann = await hub.hub.accounts.register("ann")
    authentication = hub.hub.accounts.authentication
    made = await authentication.create(ann.account, scope=OPERATE, operated=True)
    socket = Paths(hub.hub.settings.data_folder).control_socket
    async with (
        following(hub.stranger, socket=socket) as at_socket,
        following(Asker(hub.port, made.token)) as by_token,
        following(Asker(hub.port, ann.token)) as plain,
    ):
        hub.hub.behind.gateway.state_changed("files", "down")
        down = ("server.changed", {"server": "files", "state": "down"})
        assert await at_socket.event() == down
        assert await by_token.event() == down
        # Neither hears of mail: the one is nobody, and the other's scope has none.
        hub.hub.bus.emit(f"sent.{ann.account.id}", {"id": "m", "thread_id": "t"})
        assert (await plain.event())[0] == "mail.sent"
        hub.hub.behind.gateway.state_changed("files", "up")
        assert (await by_token.event())[1]["state"] == "up"
        await authentication.revoke(ann.account, made.credential.id)
        assert await by_token.ended()
