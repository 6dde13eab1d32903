"""Folded pages of a history: what people read, and counts of the rest."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from folkmoot.rooms import folding
from folkmoot.rooms.folding import is_quiet
from tests.rooms.gathering import chat, envelope

STATUS = envelope("participant.status", {"status": "busy"})


@pytest.mark.parametrize(
    ("kind", "quiet"),
    [
        ("system.presence.join", True),
        ("mcpx.begin.request", True),
        ("mcp.request.tools/list", True),
        ("mcp.response.tools/list", True),
        ("mcp.notification.notifications/progress", True),
        ("participant.status", True),
        ("capability.grant-ack", True),
        ("mcp.notification.notifications/chat/message", False),
        ("mcp.notification.notifications/cancelled", False),
        ("chat.message.markdown", False),
        ("mcp.request.tools/call:tools/list", False),
        ("mcp.request.elicitation/create", False),
        ("mcp.proposal.tools/list", False),
        ("mcpx.reject.proposal", False),
        ("capability.grant", False),
        ("participant.pause", False),
        ("made.up", False),
    ],
)
def test_presence_and_protocol_are_quiet_and_all_else_is_not(kind, quiet):
    assert is_quiet(kind) is quiet


@pytest.mark.parametrize("durable", [True, False])
async def test_what_people_read_is_returned_and_the_rest_is_counted(hub, durable):
    ann, bob = hub.ann, hub.bob
    await hub.create(ann, durable=durable)
    rooms = hub.rooms
    for number in range(3):
        for _ in range(4):
            await rooms.post(bob, "square", STATUS)
        await rooms.post(bob, "square", chat(f"Word {number}"))
        ear, live = await hub.join(bob)
        live.left(ear)
        await live.flushed()
    whole = await rooms.messages(ann, "square", limit=100)
    page = await rooms.messages(ann, "square", limit=100, fold=True)
    assert [json.loads(bytes(one))["payload"]["text"] for one in page.messages] == [
        f"Word {number}" for number in range(3)
    ]
    assert [(fold.protocol, fold.others) for fold in page.folded] == [(4, 0)] * 3 + [(0, 0)]
    comings = [fold.presence for fold in page.folded]
    assert [sorted(each) for each in comings] == [[], ["bob"], ["bob"], ["bob"]]
    assert (comings[1]["bob"].came, comings[1]["bob"].left) == (1, 1)
    assert (page.from_seq, page.through_seq) == (1, whole.last_seq)
    counted = sum(fold.last - fold.first + 1 for fold in page.folded)
    assert counted + len(page.messages) == len(whole.messages) == whole.last_seq


@pytest.mark.parametrize("durable", [True, False])
async def test_pages_meet_without_a_gap_in_both_directions_and_each_looks_only_so_far(
    hub, durable, monkeypatch
):
    ann = hub.ann
    await hub.create(ann, durable=durable)
    for number in range(60):
        await hub.rooms.post(ann, "square", STATUS if number % 6 else chat(str(number)))
    monkeypatch.setattr(folding, "GLANCE_MESSAGES", 4)
    monkeypatch.setattr(folding, "MAX_GLANCED", 12)
    pages, before = [], None
    while before != 1:
        page = await hub.rooms.messages(ann, "square", before=before, limit=3, fold=True)
        pages.insert(0, page)
        assert page.through_seq - page.from_seq < 16
        before = page.from_seq
    assert all(one.through_seq + 1 == other.from_seq for one, other in pairwise(pages))
    texts = [json.loads(bytes(one))["payload"]["text"] for page in pages for one in page.messages]
    assert texts == [str(number) for number in range(0, 60, 6)]
    after, forward = 0, []
    while after < 60:
        page = await hub.rooms.messages(ann, "square", after=after, limit=3, fold=True)
        assert page.from_seq == after + 1
        forward += [json.loads(bytes(one))["payload"]["text"] for one in page.messages]
        after = page.through_seq
    assert forward == texts


async def test_of_many_who_come_and_go_only_some_are_named(hub):
    await hub.create(hub.ann)
    for each in await hub.people(*(f"one{number}" for number in range(13))):
        ear, live = await hub.join(each)
        live.left(ear)
        await live.flushed()
    page = await hub.rooms.messages(hub.ann, "square", fold=True)
    (fold,) = page.folded
    assert (len(fold.presence), fold.others, fold.protocol) == (10, 3, 0)
