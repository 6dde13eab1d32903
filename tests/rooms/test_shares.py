"""Retention protects each author's share, and a history with holes is told and read truly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot import quotas
from folkmoot.core.ports import Tx
from folkmoot.rooms import MessagePage, RoomOptions, Visitor, queries_messages, read_patch
from folkmoot.rooms.budget import Share, Trimming, fair_share
from tests.rooms.gathering import Ear, Gathering, chat, envelope, gathering

BOTH = pytest.mark.parametrize("durable", [True, False], ids=["stored", "memory"])
FEW = RoomOptions(chat={}, keep_messages=100, memory_messages=100)
pytestmark = pytest.mark.settings(options=FEW)


def bodies(page: MessagePage) -> list[dict[str, Any]]:
    return [json.loads(bytes(raw)) for raw in page.messages]


async def every(hub: Gathering, who: Visitor, *, forward: bool, limit: int = 7) -> list[int]:
    """The `seq` of all that is kept, a page at a time from one end."""
    seqs: list[int] = []
    while True:
        if forward:
            place = {"after": seqs[-1] if seqs else 0}
        else:
            place = {"before": seqs[0]} if seqs else {}
        page = await hub.rooms.messages(who, "square", limit=limit, **place)
        found = [one["seq"] for one in bodies(page)]
        if not found:
            return seqs
        seqs = [*seqs, *found] if forward else [*found, *seqs]


async def flooded(
    hub: Gathering, ann: Visitor, bob: Visitor, thoughts: int = 400, *, durable: bool = True
) -> None:
    """A room with a conversation, and then a flood of one of the two."""
    if not (await hub.rooms.list(ann)).rooms:
        await hub.create(ann, durable=durable, access="open")
    for number in range(10):
        await hub.rooms.post(ann, "square", chat(f"a{number}"))
        await hub.rooms.post(bob, "square", chat(f"b{number}"))
    ear, live = await hub.join(bob)
    for number in range(thoughts):
        live.receive(ear, envelope("reasoning.thought", {"n": number}))
    await live.flushed()
    live.left(ear)
    await live.flushed()
    await hub.rooms._upkeep.round()


@pytest.mark.requirement("room.fair-retention")
@BOTH
async def test_a_flood_pushes_out_itself_and_nobody_else(hub, durable):
    await flooded(hub, hub.ann, hub.bob, durable=durable)
    page = await hub.rooms.messages(hub.ann, "square", limit=500)
    told = bodies(page)
    assert len(told) <= 110
    said = [one["payload"]["text"] for one in told if one["from"] == "ann"]
    assert said == [f"a{number}" for number in range(10)]
    thoughts = [one["payload"]["n"] for one in told if one["kind"] == "reasoning.thought"]
    assert thoughts == list(range(400 - len(thoughts), 400))
    assert not any(one["payload"].get("text") == "b0" for one in told)


@pytest.mark.requirement("room.fair-retention", "room.rest-history")
@BOTH
async def test_a_history_with_holes_is_paged_from_either_end_and_told_truly(hub, durable):
    await flooded(hub, hub.ann, hub.bob, durable=durable)
    page = await hub.rooms.messages(hub.ann, "square", limit=500)
    seqs = [one["seq"] for one in bodies(page)]
    assert await every(hub, hub.ann, forward=True) == seqs
    assert await every(hub, hub.ann, forward=False) == seqs
    assert (page.oldest_seq, page.last_seq) == (seqs[0], seqs[-1])
    whole = list(range(page.first_seq, page.last_seq + 1))
    assert seqs[-len(whole) :] == whole
    assert page.first_seq - 1 not in seqs
    view = await hub.rooms.get(hub.ann, "square")
    assert (view.first_seq, view.oldest_seq) == (page.first_seq, page.oldest_seq)
    missing = next(seq for seq in range(seqs[0], seqs[-1]) if seq not in seqs)
    after = await hub.rooms.messages(hub.ann, "square", after=missing, limit=1)
    assert bodies(after)[0]["seq"] == min(seq for seq in seqs if seq > missing)


@pytest.mark.requirement("room.fair-retention", "room.resume")
@BOTH
async def test_whoever_resumes_over_a_hole_is_told_and_whoever_resumes_after_it_misses_nothing(
    hub, durable
):
    await flooded(hub, hub.ann, hub.bob, durable=durable)
    first = (await hub.rooms.get(hub.ann, "square")).first_seq
    for after, complete in ((3, False), (first - 2, False), (first - 1, True)):
        ear, live = await hub.join(hub.ann, after=after)
        welcome = ear.heard[0]["payload"]
        assert welcome["resume"]["complete"] is complete
        assert welcome["history"]["first_seq"] == first
        assert 0 < welcome["history"]["oldest_seq"] < first
        if complete:
            last = live.delivered
            await ear.until_seq(last)
            assert ear.seqs[: last - first + 1] == list(range(first, last + 1))
        else:
            assert welcome["resume"]["reason"] == "history_gone"
        live.left(ear)


@pytest.mark.requirement("room.fair-retention")
async def test_what_is_kept_and_told_is_the_same_after_a_restart(tmp_path):
    async with gathering(tmp_path, options=FEW) as hub:
        ann, bob = await hub.people("ann", "bob")
        await flooded(hub, ann, bob)
        before = await hub.rooms.messages(ann, "square", limit=500)
        used = bodies(before)[0]["id"]
    async with gathering(tmp_path, options=FEW) as hub:
        view = await hub.rooms.get(ann, "square")
        assert (view.first_seq, view.oldest_seq) == (before.first_seq, before.oldest_seq)
        assert await hub.rooms.messages(ann, "square", limit=500) == before
        with pytest.raises(Exception, match="this id"):
            await hub.rooms.post(bob, "square", chat("again", id=used))
        await flooded(hub, ann, bob, thoughts=50)
        await check_shares(hub)


@pytest.mark.requirement("room.fair-retention")
@pytest.mark.settings(options=RoomOptions(chat={}))
async def test_one_who_catches_up_while_a_hole_comes_is_let_go_and_told_when_back(hub):
    await flooded(hub, hub.ann, hub.bob, thoughts=1_200)
    slow = Ear()
    slow.reads.clear()
    await hub.join(hub.ann, ear=slow, after=1)
    await slow.until_seq(2)
    await hub.rooms.change(hub.ann, "square", read_patch({"policy": {"keep_messages": 100}}))
    await hub.rooms._upkeep.round()
    slow.reads.set()
    await slow.until_closed()
    heard = slow.seqs
    assert heard == list(range(2, heard[-1] + 1))


@pytest.mark.requirement("room.fair-retention")
@pytest.mark.settings(options=RoomOptions(chat={}, room_bytes=200_000))
async def test_a_room_that_takes_too_many_bytes_is_trimmed_fairly_too(hub):
    live, ear = await hub.meet(hub.bob)
    texts = [f"a{number}" for number in range(10)]
    for text in texts:
        await hub.rooms.post(hub.ann, "square", chat(text))
    for _ in range(60):
        live.receive(ear, envelope("reasoning.thought", {"text": "x" * 10_000}))
    await live.flushed()
    live.left(ear)
    await hub.rooms._upkeep.round()
    told = bodies(await hub.rooms.messages(hub.ann, "square", limit=500))
    assert [one["payload"]["text"] for one in told if one["from"] == "ann"] == texts
    shares = (await check_shares(hub)).values()
    assert sum(share.bytes for share in shares) <= 200_000
    assert live.journal.stored.bytes == sum(share.bytes for share in shares)
    assert live.journal.stored.messages == sum(share.messages for share in shares)


async def check_shares(hub: Gathering) -> dict[str, Share]:
    """What is kept of a room's shares is what counting gives."""

    async def query(tx: Tx) -> tuple[dict[str, Share], dict[str, Share]]:
        rows = await tx.fetch(
            f"SELECT {quotas.ROOM_AUTHOR}, COUNT(*), SUM({quotas.ROOM_SIZE}) "
            "FROM room_messages WHERE room_id = 1 GROUP BY 1"
        )
        counted = {author: Share(messages, size) for author, messages, size in rows}
        return await queries_messages.shares_of_room(tx, 1), counted

    kept, counted = await hub.store.read(query, long=True)
    assert kept == counted
    return kept


async def test_shares_go_with_their_room(hub):
    await hub.create(hub.ann, access="open")
    await hub.rooms.post(hub.bob, "square", chat("hello"))
    owner, author = hub.ann.principal.account_id, hub.bob.principal.account_id
    uses = [
        lambda tx: quotas.written_in_rooms(tx, author),
        lambda tx: quotas.stored_in_own_rooms(tx, owner),
    ]
    assert all([await hub.store.read(use) > 256 for use in uses])
    await hub.rooms.delete(hub.ann, "square")
    assert [await hub.store.read(use) for use in uses] == [0, 0]


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 200))
def test_a_fair_share_is_the_largest_that_fits(amounts, most):
    share = fair_share(amounts, most)
    left = [min(amount, share) for amount in amounts]
    assert sum(left) <= most
    if left != amounts:
        assert sum(min(amount, share + 1) for amount in amounts) > most


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=60))
def test_trimming_leaves_no_more_than_may_be_and_nobody_below_their_share(messages):
    shares: dict[str, Share] = {}
    for author, size in messages:
        shares[author] = shares.get(author, Share()).plus(size)
    trimming = Trimming(shares, 20, 60)
    left = [(author, size) for author, size in messages if not trimming.goes(author, size)]
    assert trimming.is_done
    assert len(left) <= 20
    assert sum(size for _, size in left) <= 60
    for author, share in shares.items():
        if share.messages <= 6 and share.bytes <= 20:
            assert sum(one == author for one, _ in left) == share.messages
    # Those that go are each author's oldest.
    for author in shares:
        mine = [size for one, size in messages if one == author]
        kept = [size for one, size in left if one == author]
        assert mine[len(mine) - len(kept) :] == kept


async def test_upkeep_trims_while_people_talk(hub):
    live, ear = await hub.meet(hub.bob, access="open")
    for number in range(600):
        live.receive(ear, envelope("reasoning.thought", {"n": number}))
        if number % 50 == 0:
            await hub.rooms._upkeep.round()
            await asyncio.sleep(0)
    await live.flushed()
    await hub.rooms._upkeep.round()
    shares = await check_shares(hub)
    assert sum(share.messages for share in shares.values()) <= 110
