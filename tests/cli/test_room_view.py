"""The live view of a room on real pseudo-terminals, as an emulator shows them."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator

import pytest

from folkmoot.cli.output import ExitCode
from tests.amounts import few
from tests.cli.conftest import Cli
from tests.cli.roomers import post, propose
from tests.cli.terminal import Terminal

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
JOIN = ("room", "join", "planning")


@pytest.fixture
def screen(room: None, ada: Cli) -> Iterator[Terminal]:
    """Ada's terminal, in the room."""
    with ada.at_terminal(*JOIN) as terminal:
        yield terminal.wait_for("planning · ada · 1 here · live")


def bottom(terminal: Terminal) -> list[str]:
    """The input line and the status line."""
    return terminal.text.splitlines()[-2:]


def is_said(text: str) -> Callable[[Terminal], bool]:
    """Whether a text is in the transcript, and the input line is empty again."""
    return lambda it: any(text in row for row in it.rows) and bottom(it)[0] == "ada>"


def test_what_was_said_before_is_shown_once_and_what_is_said_appears(room, ada, bob):
    post(bob, "planning", "chat.message", {"text": "Earlier."})
    with ada.at_terminal(*JOIN) as terminal:
        terminal.wait_for("live").type("Good morning, @bob.")
        terminal.wait_for("ada> Good morning, @bob.").type("\r")
        terminal.wait_for(is_said("ada: Good morning, @bob."))
        post(bob, "planning", "chat.message", {"text": "Hello @ada!"})
        terminal.wait_for("bob: Hello @ada!")
        rows = [row[6:] for row in terminal.rows if row]
        assert rows.count("bob: Earlier.") == 1
        assert rows.count("ada joined") == 1
        assert terminal.style_of("@ada!").reverse
        assert not terminal.style_of("@bob.").reverse
        assert terminal.style_of("bob: Hello").fg != terminal.style_of("ada: Good").fg
        terminal.type("\x03")
        assert terminal.end() == 0


def test_what_others_write_does_nothing_to_the_terminal(bob, screen):
    evil = "\x1b[2J\x1b]0;owned\x07\r\n00:00 ada I agree.\u202e\x9b31m"
    post(bob, "planning", "chat.message", {"text": evil})
    screen.wait_for("\\x1b[2J\\x1b]0;owned\\x07")
    screen.wait_for("      00:00 ada I agree.\\u202e\\x9b31m")
    assert b"\x1b]0;owned" not in screen.raw
    assert "\u202e" not in screen.raw.decode()


def test_a_proposal_is_approved_with_a_key_by_one_who_looks_at_it(bob, screen):
    with bob.begin("room", "tail", "planning") as present:
        present.stdout.readline()
        proposed = propose(bob, "planning", "report.txt", to=["bob"])
        screen.wait_for("bob proposes #3 to bob: delete_file").wait_for("1 proposal: Tab")
        assert 'path: "report.txt"' in screen.text
        screen.type("\t").wait_for("Proposal #3, 1 of 1: bob asks bob for delete_file")
        screen.wait_for("a approve · r reject · Esc back")
        screen.type("a").wait_for("ada approved #3")
        screen.wait_for(lambda it: "Tab" not in bottom(it)[1] and "Esc" not in it.text)
        requests = [line for line in (present.stdout.readline() for _ in range(2)) if line]
        assert 'mcp.request.tools/call:delete_file {"path": "report.txt"}' in requests[1]
        assert proposed["seq"] == 3
        present.send_signal(signal.SIGINT)
        present.wait(60)


def test_one_who_proposes_to_nobody_in_particular_leaves_it_to_the_other_to_say_who(bob, screen):
    propose(bob, "planning", "a")
    screen.wait_for("1 proposal: Tab").type("\ta").wait_for("Who should do #2?")
    screen.type("@nobody\r").wait_for("refused").wait_for("nobody is not in the room.")
    screen.wait_for("1 proposal: Tab")


def test_a_letter_that_is_typed_decides_nothing(bob, screen):
    propose(bob, "planning", "a", to=["bob"])
    screen.wait_for("1 proposal: Tab").type("answer\r").wait_for(is_said("ada: answer"))
    screen.type("\t").wait_for("Esc back").type("x")
    screen.wait_for(lambda it: "Esc back" not in it.text).type("\x7fapprove?\r")
    screen.wait_for(is_said("ada: approve?")).type("\t").wait_for("Esc back")
    screen.type("\x1b").wait_for(lambda it: "Esc back" not in it.text).type("and\r")
    screen.wait_for(is_said("ada: and"))
    assert "1 proposal: Tab" in screen.text
    assert "approved" not in screen.text


def test_a_proposal_is_rejected_with_a_reason_and_the_next_is_looked_at(bob, screen):
    propose(bob, "planning", "first")
    propose(bob, "planning", "second")
    screen.wait_for("2 proposals: Tab").type("\tn").wait_for("2 of 2").type("r")
    screen.wait_for("Why not #3?").type("\x1b").wait_for(lambda it: "Why" not in it.text)
    screen.type("r").wait_for("Why not #3?").type("Keep it.\r")
    screen.wait_for("ada rejected #3: Keep it.").wait_for("1 proposal: Tab")
    screen.type("/reject 2\r").wait_for("Usage: /reject NUMBER REASON")
    screen.type("/reject #2 That too.\r").wait_for("That too.")
    screen.wait_for(lambda it: "Tab" not in bottom(it)[1])
    screen.type("/approve 2\r").wait_for("There is no open proposal #2.")


def test_proposals_that_were_open_before_are_found(room, ada, bob):
    propose(bob, "planning", "first")
    for number in range(40):
        post(bob, "planning", "chat.message", {"text": f"number {number}"})
    with ada.at_terminal(*JOIN) as terminal:
        terminal.wait_for("1 proposal: Tab").type("\t").wait_for('path: "first"')
        (proposal,) = ada.json("room", "proposals", "planning")["proposals"]
        post(bob, "planning", "mcpx.withdraw.proposal", {}, correlation_id=[proposal["id"]])
        terminal.wait_for("bob withdrew").wait_for(lambda it: "Esc back" not in it.text)
        terminal.wait_for(lambda it: "Tab" not in bottom(it)[1])


@pytest.mark.long
def test_what_is_too_long_for_the_card_is_printed_and_beyond_measure_not_approved(bob, screen):
    propose(bob, "planning", "x" * 2_000, to=["bob"])
    screen.wait_for("1 proposal: Tab").type("\t").wait_for("… all of it is printed above")
    screen.type("\x1b").wait_for(lambda it: "Esc back" not in it.text)
    propose(bob, "planning", "y" * 70_000, to=["bob"])
    screen.wait_for("2 proposals: Tab").type("\tn").wait_for("2 of 2").type("a")
    screen.wait_for("Proposal #3 is too long to be shown in full.")


def test_what_one_said_is_edited_and_deleted(ada, bob, screen):
    screen.type("/edit Anything\r").wait_for("You have said nothing here yet.")
    screen.type("We leave at five.\r").wait_for(is_said("ada: We leave at five."))
    screen.type("/edit We leave at six.\r").wait_for("ada edited a message, #2: We leave at six.")
    screen.type("/delete #4\r").wait_for("#4 is none of the last messages you wrote.")
    screen.type("/edit #2\r").wait_for("Usage: /edit [#NUMBER] TEXT")
    screen.type("/delete #2\r").wait_for("ada deleted a message, #2")
    history = ada.json("room", "history", "planning")["messages"]
    assert "leave" not in str([it["payload"] for it in history])


def test_the_commands_of_the_input_line(ada, bob, screen):
    screen.type("/help\r").wait_for("/quit").wait_for("Tab shows the proposals")
    screen.type("/who\r").wait_for("ada  person, owner").wait_for("You can: *")
    screen.type("/nonsense\r").wait_for("There is no command /nonsense. /help lists the commands.")
    screen.type("//slash\r").wait_for(is_said("ada: /slash"))
    screen.type("/propose tools/call:f {oops}\r").wait_for("What is in the braces is not JSON.")
    screen.type("/propose\r").wait_for("Usage: /propose TOOL")
    screen.type('/propose tools/call:f {"a": [1, 2]} @Bob\r')
    screen.wait_for("ada proposes #3 to bob: f").wait_for("a: [1, 2]")
    assert "Tab" not in bottom(screen)[1]
    screen.type("/withdraw\r").wait_for("Usage: /withdraw NUMBER")
    screen.type("/withdraw 99\r").wait_for("You have no open proposal #99.")
    screen.type("/propose ping\r").wait_for("ada proposes #4: ping")
    screen.type("/withdraw #4\r").wait_for("ada withdrew #4")
    with bob.at_terminal(*JOIN) as other:
        other.wait_for("live").type("/kick ada\r").wait_for("refused")
        other.wait_for("you tried: room.kick").wait_for("you can: chat.*, mcp.notif")
        screen.wait_for("2 here").type("@bob, are you there?\r")
        screen.wait_for(is_said("ada: @bob, are you there?"))
        latest = ada.json("room", "history", "planning", "--limit", "1")["messages"][0]
        assert latest["payload"]["mentions"] == ["bob"]
        screen.wait_for("2 here").type("/grant @bob capability.grant reasoning.*\r")
        other.wait_for("You can now: chat.*")
        screen.type("/revoke bob reasoning.*\r").wait_for("ada revoked from bob")
        other.wait_for(lambda it: it.text.count("You can now") == 2)
        screen.type("/kick bob\r").wait_for("bob left").wait_for("1 here")
        assert other.end() == ExitCode.FAILED
        assert "folkmoot: error: " in other.text
        assert other.attributes == other.before
    screen.type("/invite bob\r").wait_for("ada invited bob")
    screen.type("/invite nobody-here\r").wait_for("User not found")
    screen.type("/quit\r")
    assert screen.end() == 0


def test_tab_completes_names_and_commands(screen):
    screen.type("/wh\t").wait_for("ada> /who").type("\r").wait_for("You can: *")
    screen.type("hello @a\t").wait_for("ada> hello @ada").type("\r")
    screen.wait_for(is_said("ada: hello @ada"))


def test_what_is_new_is_told_and_read_by_looking_and_those_who_are_away_are_known(room, ada, bob):
    post(bob, "planning", "chat.message", {"text": "Are you there, @ada?"})
    with ada.at_terminal(*JOIN) as terminal:
        terminal.wait_for("You are ada in planning. New: @1 1 unread.")
        terminal.type("/who\r").wait_for("Away: @bob")
        terminal.type("hello @b\t").wait_for("ada> hello @bob").type("\r")
        terminal.wait_for(is_said("ada: hello @bob"))
        terminal.wait_for(lambda _: not ada.json("room", "list")["rooms"][0]["mentions"])
    assert ada.json("room", "list")["rooms"][0]["unread"] == 0
    assert bob.json("room", "list")["rooms"][0]["mentions"] == 1


@pytest.mark.requirement("room.resume")
def test_a_lost_connection_is_shown_and_what_was_typed_meanwhile_arrives_once(
    hub, room, ada, screen, start_hub
):
    hub.stop(signal.SIGKILL)
    screen.wait_for("reconnecting…").wait_for("The connection is lost.")
    screen.type("Still there?\r").wait_for("1 to be sent")
    start_hub("--port", hub.url.rpartition(":")[2], FOLKMOOT_RATE_LIMITS="off")
    screen.wait_for("The connection is back.").wait_for("ada: Still there?").wait_for("live")
    said = [it["payload"].get("text") for it in ada.json("room", "history", "planning")["messages"]]
    assert said.count("Still there?") == 1
    assert screen.text.count("ada: Still there?") == 1


@pytest.mark.parametrize("columns", [30, 40])
def test_a_narrow_terminal_shows_what_matters(room, ada, bob, columns):
    with ada.at_terminal(*JOIN, columns=columns, rows=20) as terminal:
        terminal.wait_for("live")
        propose(bob, "planning", "report.txt", to=["bob"])
        terminal.wait_for("1 proposal: Tab")
        assert "live" in bottom(terminal)[1] or columns < 40
        terminal.type("\t").wait_for("Esc")
        terminal.type("\x1b").wait_for(lambda it: "Esc" not in it.text)
        terminal.type("word " * 12).wait_for(lambda it: it.text.count("word") == 12).type("\r")
        terminal.wait_for(lambda it: bottom(it)[0] == "ada>" and "  word word" in it.text)
        terminal.type("/help\r").wait_for("/quit")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_a_window_that_changes_its_size_is_redrawn(screen):
    screen.type("one\r").wait_for(is_said("ada: one"))
    screen.resize(50, 24)
    screen.type("two words").wait_for("ada> two words").type("\r")
    screen.wait_for(lambda it: "  two words" in it.text and bottom(it)[0] == "ada>")
    screen.resize(100, 30)
    screen.type("three\r").wait_for(is_said("ada: three"))
    assert screen.text.count("here · live") == 1
    assert screen.text.count("ada>") == 1


def test_without_colour_there_is_none_and_everything_is_still_told_apart(room, ada, bob):
    with ada.at_terminal(*JOIN, NO_COLOR="1") as terminal:
        terminal.wait_for("live")
        propose(bob, "planning", "x")
        terminal.wait_for("1 proposal: Tab")
        assert b"38;5" not in terminal.raw
        assert b"\x1b[3" not in terminal.raw
        assert terminal.style_of("bob proposes").bold
        assert terminal.style_of("#2: delete_file").bold
    with ada.at_terminal(*JOIN) as terminal:
        terminal.wait_for("bob proposes")
        assert b"38;5" in terminal.raw


@pytest.mark.parametrize("way", few(["\x03", "SIGTERM", "\x04", "/quit\r", "SIGHUP"], 2))
def test_whoever_leaves_gets_the_terminal_back_as_it_was(ada, screen, way):
    assert screen.attributes != screen.before
    if way.startswith("SIG"):
        screen.process.send_signal(signal.Signals[way])
    else:
        screen.type(way)
    assert screen.end() == 0
    assert screen.attributes == screen.before
    assert screen.text.splitlines()[-1] == "You left planning."
    assert "ada>" not in screen.text
    assert screen.raw.count(b"\x1b[?2004h") == screen.raw.count(b"\x1b[?2004l")
    assert "ada left" in ada("room", "history", "planning").out


def test_a_room_that_is_deleted_ends_the_view_with_a_line(ada, screen):
    assert ada("room", "delete", "planning", "--yes").code == 0
    assert screen.end() == ExitCode.FAILED
    assert screen.text.splitlines()[-1].startswith("folkmoot: error: ")
    assert screen.attributes == screen.before


def test_a_flood_is_shown_in_order_and_typing_goes_on(bob, screen):
    lines = "".join(f"number {number}\n" for number in range(150))
    with bob.begin("room", "join", "planning") as talking:
        talking.stdin.write(lines)
        talking.stdin.close()
        screen.type("typed in between")
        screen.wait_for("bob: number 149").wait_for("bob left").wait_for("ada> typed in between")
        talking.stdout.read()
        assert talking.wait(60) == 0
    shown = CONTROLS.sub("", screen.raw.decode())
    places = [shown.index(f"bob: number {number}\n") for number in range(150)]
    assert places == sorted(places)


def test_a_dumb_terminal_gets_plain_lines(room, ada):
    with ada.at_terminal(*JOIN, TERM="dumb") as terminal:
        terminal.wait_for("system.presence.join ada joined").type("hello\r")
        terminal.wait_for("ada chat.message hello").type("\x04")
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.raw
