"""The screen of the live view: transcript, input line, status line and proposal card."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, Final, Protocol

from msgspec import Struct
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from rich.console import Console

from folkmoot.cli.room.proposals import Holder, WaitingProposal, WaitingProposals
from folkmoot.cli.room.slash import offered

SEPARATOR: Final = " · "
KEYS: Final = {"a": "a approve", "r": "r reject", "n": "n next", "esc": "Esc back"}
SHORT_KEYS: Final = {"a": "a yes", "r": "r no", "n": "n next", "esc": "Esc"}
ABOVE: Final = "… all of it is printed above"
LEAST_ROWS: Final = 4


class Situation(Struct):
    """The state in the status line: room, user, participants, connection, unsent messages."""

    room: str
    me: str
    here: int = 0
    live: bool = True
    waiting: int = 0
    """Messages that were typed and are not yet in the room."""


def status_line(now: Situation, deciding: WaitingProposals, width: int) -> StyleAndTextTuples:
    """The room, the user, the number of participants and the connection, as far as they fit.

    What must not be missed stands last on the left and at the right: it is kept longest.
    """
    state = "live" if now.live else "reconnecting…"
    sending = [f"{now.waiting} to be sent"] if now.waiting and not now.live else []
    right = "" if deciding.shown else to_decide(len(deciding))
    for parts in (
        [now.room, now.me, f"{now.here} here", *sending, state],
        [now.room, f"{now.here} here", *sending, state],
        [now.room, *sending, state],
        [*sending, state],
        [state],
    ):
        left = f" {SEPARATOR.join(parts)} "
        space = width - get_cwidth(left) - get_cwidth(right)
        if space >= 0:
            return [("", left), ("", " " * space), ("bold", right)]
    return [("", cut(right or state, width))]


def to_decide(count: int) -> str:
    """How many proposals wait, and what to press."""
    if not count:
        return ""
    return f"{count} proposal{'s' if count > 1 else ''}: Tab "


def card(deciding: WaitingProposals, width: int, height: int) -> StyleAndTextTuples:
    """The proposal being shown, with its arguments and the keys that decide on it."""
    shown = deciding.shown
    if shown is None:
        return []
    lines, whole = fitting(shown, width, height)
    if not whole:
        lines = [*lines, ABOVE]
    keys = key_line(deciding, shown, width)
    title = f"Proposal #{shown.look.seq}, {deciding.place()} of {len(deciding)}: {asked(shown)}"
    text: StyleAndTextTuples = [("bold", f"{title}\n")]
    text += [("", f"  {line}\n") for line in lines]
    return [*text, ("class:card.keys", keys)]


def key_line(deciding: WaitingProposals, shown: WaitingProposal, width: int) -> str:
    """The keys that do something with the proposal that is shown."""
    offered = offered_keys(deciding, shown)
    whole, short = (SEPARATOR.join(each[key] for key in offered) for each in (KEYS, SHORT_KEYS))
    return whole if get_cwidth(whole) <= width else short


def offered_keys(deciding: WaitingProposals, shown: WaitingProposal) -> list[str]:
    """The keys that one may use on a proposal."""
    usable = {
        "a": deciding.may_approve(shown),
        "r": deciding.may_reject(),
        "n": len(deciding) > 1,
        "esc": True,
    }
    return [key for key, may in usable.items() if may]


def asked(shown: WaitingProposal) -> str:
    """Who proposes what to whom, in words."""
    look = shown.look
    whom = f" asks {', '.join(look.to)}" if look.to else " asks"
    return f"{look.who}{whom} for {look.what}"


def fitting(shown: WaitingProposal, width: int, height: int) -> tuple[Sequence[str], bool]:
    """The lines of a proposal that the card has room for, and whether those are all."""
    room = max(height // 2, LEAST_ROWS)
    lines: list[str] = []
    for line in shown.look.text:
        room -= rows(f"  {line}", width)
        if room < 0:
            return lines, False
        lines.append(line)
    return lines, not shown.look.cut


def rows(line: str, width: int) -> int:
    """How many rows of the terminal a line takes."""
    return max(1, -(-get_cwidth(line) // max(width, 1)))


def cut(text: str, width: int) -> str:
    """A text cut to a width."""
    while get_cwidth(text) > width:
        text = text[:-1]
    return text


class NameCompleter(Completer):
    """Completes `@name`, and `/command` at the beginning of the line."""

    def __init__(self, names: Callable[[], Iterable[Any]], holder: Holder) -> None:
        self._names = names
        self._holder = holder

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterator[Completion]:
        """What the last word may become."""
        text = document.text_before_cursor
        word = text.rpartition(" ")[2]
        known = [f"@{name}" for name in sorted(self._names())] if word.startswith("@") else []
        if word == text and word.startswith("/"):
            known = [f"/{name}" for name in offered(self._holder)]
        for each in known:
            if each.startswith(word):
                yield Completion(each, start_position=-len(word))


INPUT_LINES: Final = 5
STYLES: Final = Style.from_dict({"status": "reverse", "card": "", "card.keys": "bold"})


class ScreenUser(Protocol):
    """The program behind the screen: it gets the typed lines and gives what is shown."""

    def prompt(self) -> str:
        """What stands before the input."""

    def status(self, width: int) -> StyleAndTextTuples: ...

    def card(self, width: int, height: int) -> StyleAndTextTuples:
        """What is to be decided; nothing where nothing is."""

    def enter(self, text: str) -> None:
        """A line was typed."""

    def typing(self, text: str) -> None:
        """What is on the input line changed."""

    def key(self, name: str) -> bool:
        """A key was pressed on an empty line; whether it meant something."""

    def escape(self) -> bool:
        """Ctrl-C or Escape; whether there was something to get out of."""


class Screen:
    """The terminal, while someone is in a room."""

    def __init__(self, guest: ScreenUser, completer: Completer) -> None:
        self._guest = guest
        self._output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
        # Where the cursor is matters to nothing here, and asking leaves answers behind on exit.
        self._output.enable_cpr = False
        self._buffer = Buffer(
            accept_handler=self._accept,
            history=InMemoryHistory(),
            completer=completer,
            multiline=False,
            on_text_changed=lambda buffer: self._guest.typing(buffer.text),
        )
        self._app: Application[None] = Application(
            layout=Layout(self._rows()),
            key_bindings=self._keys(),
            style=STYLES,
            output=self._output,
            erase_when_done=True,
        )
        self._app.ttimeoutlen, self._app.timeoutlen = 0.1, 0.3

    @property
    def width(self) -> int:
        """Columns of the terminal now."""
        return self._output.get_size().columns

    @property
    def height(self) -> int:
        """Rows of the terminal now."""
        return self._output.get_size().rows

    async def run(self) -> None:
        """Be on the terminal until someone leaves."""
        await self._app.run_async(handle_sigint=False)

    def leave(self) -> None:
        """Give the terminal back."""
        if self._app.is_running and self._app.future and not self._app.future.done():
            self._app.exit()

    def refresh(self) -> None:
        """Something changed that is shown below."""
        self._app.invalidate()

    def clear_input(self) -> None:
        """Let the input line be empty."""
        self._buffer.reset()

    def print(self, draw: Callable[[Console], None]) -> None:
        """Let the transcript go on: `draw` gets a console as wide as the terminal is."""
        written = StringIO()
        draw(self._console(written))
        text = written.getvalue().replace("\n", "\r\n")
        if self._app.is_running:
            self._app.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        self._app.invalidate()

    def _console(self, file: StringIO) -> Console:
        # Colours are those of the real terminal, which a console on a file cannot know.
        colours = Console(file=sys.stdout).color_system
        return Console(
            file=file,
            force_terminal=True,
            color_system=colours,  # type: ignore[arg-type]
            width=self.width,
            highlight=False,
        )

    def _accept(self, buffer: Buffer) -> bool:
        self._guest.enter(buffer.text)
        return False

    def _rows(self) -> HSplit:
        card = FormattedTextControl(lambda: self._guest.card(self.width, self.height))
        status = FormattedTextControl(lambda: self._guest.status(self.width))
        prompt = BeforeInput(lambda: self._guest.prompt())
        return HSplit(
            [
                ConditionalContainer(
                    Window(card, dont_extend_height=True, wrap_lines=True, style="class:card"),
                    Condition(lambda: bool(self._guest.card(self.width, self.height))),
                ),
                Window(
                    BufferControl(self._buffer, input_processors=[prompt]),
                    height=lambda: Dimension(min=1, max=INPUT_LINES),
                    wrap_lines=True,
                    dont_extend_height=True,
                ),
                Window(status, height=1, style="class:status"),
            ]
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)

        @keys.add("c-c")
        def _(_: KeyPressEvent) -> None:
            if not self._guest.escape():
                self.leave()

        @keys.add("escape")
        def _(_: KeyPressEvent) -> None:
            self._guest.escape()

        @keys.add("c-d", filter=empty)
        def _(_: KeyPressEvent) -> None:
            self.leave()

        @keys.add("tab")
        def _(_: KeyPressEvent) -> None:
            if not self._buffer.text:
                self._guest.key("tab")
            elif self._buffer.complete_state:
                self._buffer.complete_next()
            else:
                self._buffer.start_completion(select_first=True)

        for letter in "arn":

            @keys.add(letter, filter=empty)
            def _(event: KeyPressEvent, letter: str = letter) -> None:
                if not self._guest.key(letter):
                    self._buffer.insert_text(event.data)

        return keys
