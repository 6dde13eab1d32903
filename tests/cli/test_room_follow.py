"""A room in lines: `tail` for scripts, and `join` where there is no terminal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.cli.room.follow import MAX_LINE, RoomFollower, Speaker, typed_lines
from folkmoot.client import Message
from folkmoot.client.model import make_gap
from folkmoot.core import errors as e
from folkmoot.rooms.model import MessagePage
from tests.cli.roomers import post, post_text, propose
from tests.forge.forked import Forked


def line_of(process: Forked) -> str:
    return process.stdout.readline()


def envelope_of(process: Forked) -> Any:
    return json.loads(line_of(process))


def is_end(process: Forked) -> tuple[int, str]:
    """How it ended and what it said last on stderr."""
    return process.wait(60), process.stderr.read()


def test_tail_prints_each_envelope_as_a_line_at_once_and_ends_with_ctrl_c(room, ada, bob):
    with bob.begin("room", "tail", "planning", "--json") as tail:
        assert envelope_of(tail)["kind"] == "system.presence.join"
        spaced = '{ "protocol": "mcpx/v1",\n\n "kind": "chat.message",\r\n "payload": {"n": 1.10,'
        sent = post(ada, "planning", "chat.message", {"text": "one\u2028\x9b31m"})
        line = line_of(tail)
        assert json.loads(line) == sent
        assert "\\u2028" in line
        assert "\\u009b31m" in line
        post_text(ada, "planning", f'{spaced} "text": "x"}}}}')
        line = line_of(tail)
        assert '"n": 1.10' in line
        assert json.loads(line)["payload"] == {"n": 1.1, "text": "x"}
        tail.send_signal(signal.SIGINT)
        assert is_end(tail) == (ExitCode.INTERRUPTED, "")
    said = [it["kind"] for it in ada.json("room", "history", "planning")["messages"]]
    assert said[-1] == "system.presence.leave"


def test_tail_begins_where_it_is_told_to_and_brings_nothing_twice(room, ada, bob):
    for number in range(1, 6):
        post(ada, "planning", "chat.message", {"text": f"number {number}"})
    for as_json in (True, False):
        options = ("--json",) if as_json else ()
        with bob.begin("room", "tail", "planning", "--after", "2", *options) as tail:
            post(ada, "planning", "chat.message", {"text": "the last"})
            seqs: list[int] = []
            line = ""
            while "the last" not in line:
                line = line_of(tail)
                seqs.append(json.loads(line)["seq"] if as_json else int(line.split()[0]))
            assert seqs[:3] == [3, 4, 5]
            assert seqs == sorted(set(seqs))
            tail.send_signal(signal.SIGINT)
            assert is_end(tail) == (ExitCode.INTERRUPTED, "")
            post(ada, "planning", "chat.message", {"text": "between"})


def test_tail_ends_when_nobody_reads_it_though_nothing_is_said(room, bob):
    with bob.begin("room", "tail", "planning") as tail:
        tail.stdout.readline()
        tail.stdout.close()
        assert is_end(tail) == (ExitCode.FAILED, "")


@pytest.mark.requirement("room.resume")
def test_tail_goes_on_after_the_hub_was_killed_and_brings_all_once(hub, room, ada, bob, start_hub):
    with bob.begin("room", "tail", "planning", "--json") as tail:
        seqs = [envelope_of(tail)["seq"]]
        post(ada, "planning", "chat.message", {"text": "before"})
        seqs.append(envelope_of(tail)["seq"])
        hub.stop(signal.SIGKILL)
        start_hub("--port", hub.url.rpartition(":")[2], FOLKMOOT_RATE_LIMITS="off")
        post(ada, "planning", "chat.message", {"text": "after"})
        envelope: Any = {}
        while envelope.get("payload", {}).get("text") != "after":
            envelope = envelope_of(tail)
            seqs.append(envelope["seq"])
        assert seqs == list(range(1, len(seqs) + 1))
        tail.send_signal(signal.SIGINT)
        assert is_end(tail)[0] == ExitCode.INTERRUPTED


def test_lines_of_the_standard_input_are_said_and_its_end_leaves(room, ada, bob):
    out = bob.says("room", "join", "planning", given="one\n\n/two\n\x1b[2Jthree")
    fields = [line.split(" ", 4) for line in out.splitlines()]
    assert [it[0] for it in fields] == ["1", "2", "3", "4"]
    assert [it[2:] for it in fields] == [
        ["gateway", "system.presence.join", "bob joined"],
        ["bob", "chat.message", "one"],
        ["bob", "chat.message", "/two"],
        ["bob", "chat.message", "\\x1b[2Jthree"],
    ]
    assert "bob left" in ada("room", "history", "planning").out


def test_a_line_that_is_refused_is_told_and_the_rest_is_said(room, ada, bob):
    ada("room", "change", "planning", "--capability", "reasoning.*")
    ran = bob("room", "join", "planning", given="one\ntwo\n")
    assert ran.code == ExitCode.FAILED
    assert ran.err.count("folkmoot: error: You have no permission for chat.message") == 2
    assert "you can: reasoning.*" in ran.err
    assert ran.err.endswith("folkmoot: error: 2 of the lines were refused.\n")


def test_one_who_is_put_out_is_told_and_the_command_fails(room, ada, bob):
    with bob.begin("room", "join", "planning") as joined:
        line_of(joined)
        post(ada, "planning", "room.kick", {"participant": "bob"})
        code, said = is_end(joined)
        assert code == ExitCode.FAILED
        assert said == "folkmoot: error: You may not enter this room, or may no longer be in it.\n"


def test_a_proposal_is_one_line_with_its_arguments(room, ada, bob):
    with bob.begin("room", "tail", "planning") as tail:
        line_of(tail)
        propose(ada, "planning", "a b")
        assert line_of(tail).split(" ", 3)[3] == (
            'mcp.proposal.tools/call:delete_file path: "a b"\n'
        )
        tail.send_signal(signal.SIGINT)
        assert is_end(tail)[0] == ExitCode.INTERRUPTED


class Played:
    """A room and its history as they are at one moment that no real one can be made to wait in."""

    name = "planning"

    def __init__(self, kept: list[int], last_seq: int, *coming: Message) -> None:
        self.kept = kept
        self.last_seq = last_seq
        self._coming = iter(coming)

    def read_messages(self, _: str, *, after: int, limit: int) -> MessagePage:
        kept = [
            {"seq": seq, "id": f"id-{seq}", "kind": "chat.message"}
            for seq in self.kept
            if seq > after
        ]
        return MessagePage(kept[:limit], first_seq=1, last_seq=self.last_seq)

    def __aiter__(self) -> Played:
        return self

    async def __anext__(self) -> Message:
        for message in self._coming:
            return message
        raise StopAsyncIteration


def come(seq: int) -> Message:
    raw = json.dumps({"seq": seq}).encode()
    return Message(seq=seq, id=f"id-{seq}", sender="ada", kind="chat.message", payload={}, raw=raw)


def played(room: Played, after: int) -> None:
    async def main() -> None:
        follower = RoomFollower(as_json=True)
        await follower.catch_up(room, room, after)  # type: ignore[arg-type]
        await follower.follow(room)  # type: ignore[arg-type]

    asyncio.run(main())


def test_what_comes_while_the_history_is_fetched_is_printed_once(capsys):
    played(Played([1, 2, 3, 4, 5], 4, come(4), come(5), come(6)), 1)
    printed = [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()]
    assert printed == [2, 3, 4, 5, 6]


def test_what_is_no_longer_kept_is_told_and_after_a_gap_the_numbers_may_begin_anew(capsys):
    began_anew, forgotten = make_gap(9, 0, "epoch_changed"), make_gap(2, 6, "history_gone")
    played(Played([8, 9], 9, began_anew, come(1), come(2), forgotten, come(7)), 3)
    shown = capsys.readouterr()
    printed = [json.loads(line)["seq"] for line in shown.out.splitlines()]
    assert printed == [8, 9, 1, 2, 7]
    assert shown.err.splitlines() == [
        "folkmoot: warning: messages 4 to 7 are no longer kept",
        ("folkmoot: warning: some messages are missing: the room was restarted, and its "
         "numbering with it"),
        ("folkmoot: warning: messages 3 to 6 are missing: the history no longer has them"),
    ]  # fmt: skip


class Strict:
    """Stands where a hub with rate limits would make the test wait a minute."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.participants: dict[str, Any] = {}
        self.said: list[str] = []

    async def say(self, line: str, *, mentions: list[str] | None) -> Any:
        assert mentions is None
        self.said.append(line)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_line_that_came_too_soon_is_said_again_when_the_hub_wants_it(capsys):
    room = Strict(e.RateLimited("Too fast.", retry_after=0.001), SimpleNamespace(seq=7))
    speaker = Speaker(room)  # type: ignore[arg-type]
    asyncio.run(speaker._say("one"))
    assert (room.said, speaker.said) == (["one", "one"], 7)
    assert capsys.readouterr().err == "folkmoot: warning: Too fast. Waiting.\n"
    hopeless = Speaker(Strict(e.RateLimited("Too fast.", retry_after=86_400)))  # type: ignore[arg-type]
    with pytest.raises(e.RateLimited):
        asyncio.run(hopeless._say("one"))


def typed(descriptor: int) -> list[str]:
    async def read() -> list[str]:
        return [line async for line in typed_lines(descriptor)]

    try:
        return asyncio.run(read())
    finally:
        os.close(descriptor)


def piped(*chunks: bytes) -> int:
    reading, writing = os.pipe()
    for chunk in chunks:
        os.write(writing, chunk)
    os.close(writing)
    return reading


def test_lines_are_put_together_from_whatever_pieces_they_come_in():
    pieces = piped("grü".encode()[:-1], "ü".encode()[-1:] + b"n\r\nb", b"", b"c\n\nd")
    assert typed(pieces) == ["grün", "bc", "d"]
    assert typed(piped()) == []


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    file = tmp_path / "long"
    file.write_bytes(b"x" * (MAX_LINE + 1_000_000))
    with pytest.raises(e.MessageTooLarge):
        typed(os.open(file, os.O_RDONLY))
