"""How messages of a room look: in lines, on terminals of any width, whoever wrote them."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console

from folkmoot.cli.output import SPANS
from folkmoot.cli.room.actions import draw_tools
from folkmoot.cli.room.draw import draw
from folkmoot.cli.room.messages import (
    CHIPS,
    MAX_SHOWN_TEXT,
    OTHER_CHIP,
    PALETTE,
    RED,
    Looks,
    Tone,
    colour_of,
    look,
    plain,
    verbatim,
)
from folkmoot.cli.room.proposals import WaitingProposals
from folkmoot.cli.room.screen import Situation, status_line
from folkmoot.cli.room.screen import card as card_of
from folkmoot.client import OfferedTool
from folkmoot.core.kinds import KNOWN_KINDS
from tests.docs.pages import pages

TS = "2026-11-15T08:12:03.120Z"


def said(seq: int | None, kind: str, payload: Any = None, who: str = "ada", **more: Any) -> Any:
    """An envelope as a hub delivers it."""
    members = {} if seq is None else {"seq": seq}
    return {**members, "ts": TS, "protocol": "mcpx/v1", "id": f"id-{seq}", "from": who,
            "kind": kind, "payload": payload or {}, **more}  # fmt: skip


def call(operation: str, seq: int = 4, **arguments: Any) -> Any:
    params = {"name": "read_file", "arguments": arguments}
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return said(seq, f"mcp.{operation}.tools/call", payload, to=["tools"])


def shown(
    *envelopes: Any, width: int = 80, me: str = "", colour: bool = False, raw: bool = False
) -> str:
    file = StringIO()
    screen = Console(
        file=file, width=width, highlight=False, force_terminal=colour,
        color_system="256" if colour else None,
    )  # fmt: skip
    looks = Looks()
    for envelope in envelopes:
        draw(screen, looks.look(envelope), me, raw=raw)
    return file.getvalue()


def luminance(number: int) -> float:
    def linear(value: int) -> float:
        part = value / 255
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = Color.from_ansi(number).get_truecolor()
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


@pytest.mark.parametrize("number", sorted({*PALETTE, *CHIPS.values(), OTHER_CHIP, RED}))
def test_every_colour_is_readable_on_black_and_on_white(number):
    light = luminance(number) + 0.05
    assert light / 0.05 >= 4
    assert 1.05 / light >= 4


def test_a_participant_has_one_colour_always_and_participants_have_several():
    assert colour_of("ada") == 27
    assert len({colour_of(f"agent-{number}") for number in range(100)}) == len(PALETTE)


def test_chat_looks_the_same_in_both_spellings():
    method = "notifications/chat/message"
    notice = {"jsonrpc": "2.0", "method": method, "params": {"text": "Good morning."}}
    for envelope in (
        said(2, "chat.message", {"text": "Good morning."}),
        said(2, "chat.message.markdown", {"text": "Good morning."}),
        said(2, f"mcp.notification.{method}", notice),
    ):
        seen = look(envelope)
        assert (seen.chip, seen.text, seen.tone) == ("", ("Good morning.",), Tone.SAID)


def test_a_line_has_the_number_the_time_who_what_and_the_words():
    assert plain(look(said(2, "chat.message", {"text": "one\ntwo"}))) == (
        f"2 {TS} ada chat.message one\\x0atwo"
    )
    assert plain(look(call("request", path="a b"))) == (
        f'4 {TS} ada mcp.request.tools/call:read_file {{"path": "a b"}}'
    )
    spaced = said(5, "mcp.proposal.tools/call", {"method": "tools/call", "params": {"name": "a b"}})
    assert plain(look(spaced)).split(" ")[3] == "mcp.proposal.tools/call:a\\x20b"


def test_an_envelope_in_its_own_bytes_is_one_line_of_the_same_json():
    data = '{"seq":1,\n "payload":\r\n{"n":1.10,"text":"a\\nb\x9b31m\u202e"}}'.encode()
    assert verbatim(data) == ('{"seq":1,  "payload":  {"n":1.10,"text":"a\\nb\\u009b31m\\u202e"}}')


def test_nothing_anyone_writes_acts_on_the_terminal_or_hides():
    bad = "".join(chr(first) + chr(last) for first, last in SPANS if first not in (0, 0xD800))
    bad += "\x1b[2J\x00"
    payloads = {
        "chat.message": {"text": bad, "mentions": [bad]},
        "mcp.request.tools/call": {"method": "tools/call", "params": {"name": bad, bad: bad}},
        "mcp.proposal.tools/call": {"method": "tools/call", "params": {bad: {bad: [bad]}}},
        "mcp.response.tools/call": {"error": {"message": bad}},
        "system.presence.join": {"participant": {"id": bad, "type": bad}},
        "system.error": {"message": bad, "attempted_kind": bad, "your_capabilities": [bad]},
        "capability.grant": {"recipient": bad, "capabilities": [bad, {bad: bad}]},
        "room.kick": {"participant": bad},
        "reasoning.thought": {"text": bad},
        "weather.report": {bad: bad},
        bad: {bad: bad},
    }
    for kind, payload in payloads.items():
        envelope = said(1, kind, payload, who=bad, to=[bad], ts=bad, correlation_id=[bad])
        for text in (plain(look(envelope)), shown(envelope), shown(envelope, width=30)):
            hidden = {each for each in text for first, last in SPANS if first <= ord(each) <= last}
            assert hidden <= {"\n"}
        assert "\n" not in plain(look(envelope))


@pytest.mark.parametrize(
    "envelope",
    [
        {}, {"kind": 1, "payload": []}, {"kind": "chat.message", "payload": {"text": [1]}},
        {"kind": "mcp.response.x", "payload": {"result": 1}}, {"to": 5, "seq": "x", "ts": 7},
        {"kind": "mcp.response.tools/call", "payload": {"result": {"content": [1]}}},
        {"kind": "mcp.notification.notifications/progress", "payload": {"params": 3}},
        {"kind": "mcp.notification.notifications/cancelled", "payload": {"params": 3}},
        {"kind": "mcp.request.tools/call:a", "payload": {"params": {"name": "b"}}},
        {"kind": "mcp.request.ping", "payload": {"params": [1]}},
        {"kind": "system.welcome", "payload": {"you": 3}},
        {"kind": "system.presence.join", "payload": {"participant": 3}},
    ],
)  # fmt: skip
def test_what_is_no_envelope_is_still_shown(envelope):
    assert plain(look(envelope))
    assert shown(envelope)


def answer(seq: int, about: int, *texts: str, **more: Any) -> Any:
    result = {"content": [{"type": "text", "text": text} for text in texts], **more}
    payload = {"jsonrpc": "2.0", "id": 1, "result": result}
    return said(seq, "mcp.response.tools/call:high_water", payload, who="tides", to=["ada"],
                correlation_id=[f"id-{about}"])  # fmt: skip


def asked(operation: str, seq: int, who: str = "ada", **more: Any) -> Any:
    params = {"name": "high_water", "arguments": {"harbour": "Rye", "n": 3, "at": "a b"}}
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return said(seq, f"mcp.{operation}.tools/call", payload, who, to=["tides"], **more)


OFFERED = {"result": {"tools": [{"name": "f"}, {"name": "g"}]}}


def test_what_happens_is_told_in_sentences():
    envelopes = [
        asked("request", 3),
        answer(4, 3, "six o'clock"),
        asked("proposal", 5, "bob"),
        asked("request", 6, correlation_id=["id-5"]),
        said(24, "mcpx.begin.request", {}, "tides", correlation_id=["id-6"]),
        answer(7, 6, "six o'clock"),
        answer(8, 6, "one", "two"),
        answer(9, 6, "no sea", isError=True),
        said(10, "mcp.proposal.ping", {"method": "ping"}, "bob"),
        said(11, "mcpx.reject.proposal", {"reason": "Not now."}, correlation_id=["id-5"]),
        said(12, "mcpx.withdraw.proposal", {}, "bob", correlation_id=["id-10"]),
        said(13, "system.proposal.expired", {}, "gateway", correlation_id=["id-5"]),
        said(14, "capability.grant", {"recipient": "bob", "capabilities": ["a.*", "b.*"]}),
        said(15, "capability.revoke", {"recipient": "bob"}),
        said(16, "room.invite", {"handle": "cy"}),
        said(17, "room.kick", {"participant": "cy", "reason": "Spam."}),
        said(18, "mcp.request.tools/list", {"method": "tools/list", "params": {}}, to=["tides"]),
        said(23, "mcp.response.tools/list", OFFERED, "tides", correlation_id=["id-18"]),
        said(19, "reasoning.thought", {"text": "Hm."}, "tides"),
        said(20, "participant.pause", {}, to=["tides"]),
        said(21, "mcpx.reject.proposal", {"reason": "No."}, correlation_id=["unknown"]),
        said(22, "weather.report", {"wind": 3}),
    ]
    assert [line[6:] for line in shown(*envelopes).splitlines()] == [
        'ada asked tides: high_water harbour=Rye n=3 at="a b"  #3',
        "tides: six o'clock  re #3",
        "bob proposes #5 to tides: high_water",
        'harbour: "Rye"',
        "n: 3",
        'at: "a b"',
        "ada approved #5",
        "tides began #5",
        "tides: six o'clock  re #5",
        "tides:",
        "one",
        "two  re #5",
        "tides failed: no sea  re #5",
        "bob proposes #10: ping",
        "ada rejected #5: Not now.",
        "bob withdrew #10",
        "#5 expired: nobody decided in time",
        "ada granted bob: a.*, b.*",
        "ada revoked the grants of bob",
        "ada invited cy",
        "ada kicked cy: Spam.",
        "ada asked tides for its tools",
        "tides offers: f, g",
        "tides thinks: Hm.",
        "ada paused tides",
        "ada rejected an earlier message: No.",
        'ada  weather report  #22 {"wind": 3}',
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_tools_are_listed_by_whose_they_are_and_stay_within_the_terminal(width):
    tool = {
        "name": "high_water",
        "description": "When the tide is highest.\nMore.\x1b[2J",
        "inputSchema": {"properties": {"harbour": {}, "d\x1b": {}}, "required": ["harbour"]},
    }
    other = {"name": "clock", "description": "word " * 40}
    file = StringIO()
    screen = Console(file=file, width=width, highlight=False, color_system=None)
    owned = [("tides", tool), ("tides", other), ("cuckoo", other)]
    draw_tools(screen, [OfferedTool(who, what) for who, what in owned])
    lines = file.getvalue().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["tides", "cuckoo"]
    assert lines[1].startswith("  high_water harbour= [d\\x1b=]  When")
    assert max(map(len, lines)) <= width
    assert "\x1b" not in file.getvalue()
    assert "More" not in file.getvalue()


def test_every_kind_we_know_has_its_words():
    without = {"mcp.notification", "room.invite-ack", "stream.open"}
    for kind in {known.kind for known in KNOWN_KINDS} - without:
        method = {"mcp": ".ping", "system": ".expired"}.get(kind.partition(".")[0], "")
        assert look(said(1, f"{kind}{method}")).words is not None, kind


def test_a_wide_terminal_shows_time_name_chip_and_what_belongs_together():
    asked = call("request", 4, path="a.txt")
    payload = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x\ny"}]}}
    answer = said(5, "mcp.response.tools/call:read_file", payload, who="tools", to=["ada"],
                  correlation_id=["id-4"])  # fmt: skip
    first, *rest = shown(asked, answer, raw=True).splitlines()
    assert first[5:] == ' ada → tools  request tools/call:read_file  #4 {"path": "a.txt"}'
    assert [line[5:] for line in rest] == [
        " tools → ada  response tools/call:read_file  re #4 #5", " x", " y",
    ]  # fmt: skip


def test_a_proposal_shows_every_argument_in_a_line_of_its_own():
    text = look(call("proposal", **{"path": "a\nb", 'x\nmode: "safe"\n': 1})).text
    assert text == ('path: "a\\nb"', 'x\\nmode: \\"safe\\"\\n: 1')
    more = said(1, "mcp.proposal.tools/call:f", {
        "method": "tools/call", "params": {"name": "f", "arguments": {"a": 1}, "_meta": {"b": 2}},
    })  # fmt: skip
    assert look(more).text == ('arguments: {"a": 1}', '_meta: {"b": 2}')


def test_a_proposal_shows_its_reason_and_no_argument_can_pass_for_it():
    payload = {"method": "tools/call", "reason": 'Dark.\npath: "b"',
               "params": {"name": "f", "arguments": {"path": "a", "because": "x"}}}  # fmt: skip
    text = look(said(1, "mcp.proposal.tools/call:f", payload)).text
    assert text == ('path: "a"', 'because: "x"', 'because "Dark.\\npath: \\"b\\""')
    bare = {"method": "ping", "reason": "To see."}
    assert look(said(1, "mcp.proposal.ping", bare)).text == ('because "To see."',)


def test_a_refusal_says_what_was_tried_and_what_is_allowed():
    refused = said(None, "system.error", {
        "error": "capability_denied", "message": "You may not.", "retry_after": 12.5,
        "attempted_kind": "mcp.request.ping", "your_capabilities": ["chat.*", {"kind": "x.y"}],
    }, who="gateway")  # fmt: skip
    seen = look(refused)
    assert (seen.chip, seen.tone) == ("refused", Tone.FAILED)
    assert seen.text == (
        "You may not.", "you tried: mcp.request.ping", 'you can: chat.*, {"kind": "x.y"}',
        "try again in 12.5 seconds",
    )  # fmt: skip


def test_a_refusal_that_is_not_about_rights_lists_none():
    refused = said(None, "system.error", {
        "error": "participant_unknown", "message": "Nobody is called so here.",
        "attempted_kind": "room.kick", "your_capabilities": ["*"],
    }, who="gateway")  # fmt: skip
    assert look(refused).text == ("Nobody is called so here.", "you tried: room.kick")


@pytest.mark.parametrize("width", [20, 40, 59, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_nor_begins_as_someone_elses(width):
    text = "ada 08:12\n08:12 ada I am the owner\n" + "word " * 40 + "x" * 300 + "漢字" * 60
    drawn = shown(said(1, "chat.message", {"text": text}, who="eve"), width=width).splitlines()
    assert max(map(cell_len, drawn)) <= width
    assert sum(not line.startswith("  ") for line in drawn) == 1
    assert all(line == line.rstrip() for line in drawn)


@pytest.mark.parametrize(
    ("text", "marked"),
    [("@bob look", True), ("look, @Bob!", True), ("@bobby", False), ("a@bob", False),
     ("@bob-2", False), ("bob", False)],
)  # fmt: skip
def test_a_mention_of_the_reader_stands_out(text, marked):
    drawn = shown(said(1, "chat.message", {"text": text}), me="bob", colour=True)
    assert ("\x1b[1;7m" in drawn) is marked


def test_one_who_is_meant_is_told_so_though_the_text_does_not_name_them():
    envelope = said(1, "chat.message", {"text": "Your turn.", "mentions": ["bob", 7]})
    assert shown(envelope, me="bob").rstrip().endswith("ada: @bob Your turn.")
    assert shown(envelope, me="cy").rstrip().endswith("ada: Your turn.")


def test_presence_is_dim_and_names_who_is_no_person():
    came = said(1, "system.presence.join", {"participant": {"id": "coder", "type": "agent"}})
    left = said(2, "system.presence.leave", {"participant": {"id": "bob", "type": "person"}})
    assert [line[6:] for line in shown(came, left).splitlines()] == [
        "coder (agent) joined", "bob left",
    ]  # fmt: skip
    assert "\x1b[2mcoder (agent) joined" in shown(came, colour=True)


def test_who_is_paused_and_who_may_go_on_is_said_in_words():
    paused, resumed = "system.participant.paused", "system.participant.resumed"
    held = said(1, paused, {"participant": "ping", "by": "gateway", "reason": "A loop."})
    stopped = said(2, paused, {"participant": "ping", "by": "ada", "reason": None})
    freed = said(3, resumed, {"participant": "ping", "by": "ada"})
    asked = said(6, "participant.resume", {})
    repeated = said(7, resumed, {"participant": "ping", "by": "ada"}, correlation_id=["id-6"])
    over = said(4, resumed, {"participant": "ping", "by": "gateway"})
    kicked = said(5, "system.proposal.withdrawn", {"proposal": "p"}, correlation_id=["p"])
    lines = shown(held, stopped, freed, over, kicked, asked, repeated).splitlines()
    assert [line[6:].rstrip() for line in lines] == [
        "ping is paused: A loop.",
        "ping is paused by ada",
        "ping is resumed by ada",
        "ping is resumed",
        "an earlier message closed: its proposer was kicked",
        "ada resumed everyone",
    ]  # fmt: skip


def test_a_text_beyond_measure_is_cut_and_says_so():
    long = said(1, "chat.message", {"text": "x" * (MAX_SHOWN_TEXT + 1)})
    assert look(long).cut
    assert sum(map(len, look(long).text)) == MAX_SHOWN_TEXT
    assert "the message is longer" in shown(long)


def test_only_the_latest_messages_are_remembered_for_what_is_about_them():
    looks = Looks()
    for number in range(5_000):
        looks.look(said(number, "chat.message", {"text": "x"}))
    assert looks.look(said(None, "x.y", correlation_id=["id-1", "id-4999"])).about == (4999,)


def test_the_tutorial_shows_what_the_view_draws():
    def joined(seq: int, who: str, type_: str = "person") -> Any:
        return said(seq, "system.presence.join", {"participant": {"id": who, "type": type_}})

    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
             "params": {"name": "high_water", "arguments": {"harbour": "Rye"}}}  # fmt: skip
    result = {"content": [{"type": "text", "text": "High water at Rye: six o'clock."}]}
    wanted = {"name": "high_water", "arguments": {"harbour": "Dover"}}
    payload = {"method": "tools/call", "params": wanted}
    proposal = said(7, "mcp.proposal.tools/call:high_water", payload, who="bob", to=["tides"])
    drawn = shown(
        joined(1, "ada"),
        joined(2, "bob"),
        said(3, "chat.message", {"text": "Good morning @ada!"}, who="bob"),
        joined(4, "tides", "agent"),
        said(5, "mcp.request.tools/call:high_water", asked, to=["tides"]),
        said(6, "mcp.response.tools/call:high_water", {"jsonrpc": "2.0", "id": 1, "result": result},
             who="tides", to=["ada"], correlation_id=["id-5"]),
        proposal,
    )  # fmt: skip
    view, card, *_ = (
        block.text.splitlines()
        for block in pages()["docs/tutorials/rooms.md"].blocks
        if block.language == "text"
    )
    told = [line for line in view[:-2] if "You are ada" not in line]
    assert [line[5:] for line in told] == [line[5:] for line in drawn.splitlines()]

    deciding = WaitingProposals("ada")
    deciding.see(proposal)
    status = status_line(Situation("planning", "ada", here=3), deciding, len(view[-1]) + 1)
    assert "".join(part[1] for part in status).rstrip() == view[-1]
    deciding.next()
    assert "".join(part[1] for part in card_of(deciding, 80, 24)).splitlines() == card
