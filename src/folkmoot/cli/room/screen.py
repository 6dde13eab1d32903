"""The screen of the live view: a transcript that scrolls by, an input line, a status line.

The transcript is printed above the other two and so belongs to the terminal, which scrolls it back
and lets it be copied as anything else. Every key that does something is in `keys`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import StringIO
from typing import Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
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
from rich.console import Console

INPUT_LINES: Final = 5
STYLES: Final = Style.from_dict({"status": "reverse", "card": "", "card.keys": "bold"})


class Guest(Protocol):
    """Who is behind the screen: what it is told, and what it says is to be seen."""

    def prompt(self) -> str:
        """What stands before the input."""

    def status(self, width: int) -> StyleAndTextTuples:
        """The status line."""

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

    def __init__(self, guest: Guest, completer: Completer) -> None:
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
