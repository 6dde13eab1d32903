"""Tables, messages and fields on a terminal or in a pipe; numbers and times as people say them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from folkmoot.cli.output import (
    aligned,
    coloured,
    console,
    duration,
    lines,
    moment,
    on_terminal,
    one_line,
    say,
)
from folkmoot.core.uuids import SHORT, WHOLE

if TYPE_CHECKING:
    from folkmoot.mail.model import MailMessage
    from folkmoot.proxy.tape.lines import TapeSide


SEALED = "(end-to-end encrypted: only the app or bridge that holds the key can read it)"
MODES = {"server_assisted": "server-assisted"}
"""How a message was encrypted, where the word of the wire is not one of people's."""


GAP = 2
INDENT = 4
LEAST_WIDE = 20
"""Characters of a long text that are worth a column."""


class Column(NamedTuple):
    """One column of a table: its heading and how it looks on a terminal.

    One that is `named` says its heading also where there is no room for headings.
    """

    heading: str
    style: str = ""
    wide: bool = False
    named: bool = False
    """Whether the heading stands before the cell where there is no table."""


def word(value: Any) -> str:
    """A short text of someone else's; a dash where there is none."""
    return one_line(str(value)) if value not in (None, "") else "-"


def short(name: Any) -> str:
    """An id as people are shown it: its beginning, which every command takes too."""
    text = word(name)
    return text[:SHORT] if len(text) == WHOLE else text


FAINT = "dim default not bold"


class MessageNote(NamedTuple):
    """A word about a message, and how it looks on a terminal."""

    text: str
    style: str


def notes_on(message: MailMessage) -> list[MessageNote]:
    """What there is to say about a message: whether it is new, how urgent, how it was encrypted."""
    mode, priority = message.encryption_mode, message.priority
    notes = [
        MessageNote("new" if message.unread else "", "bold yellow"),
        MessageNote(word(priority) if priority != "normal" else "", "bold red"),
        MessageNote(word(MODES.get(mode, mode)), FAINT),
    ]
    return [note for note in notes if note.text]


def at(handle: Any) -> str:
    return f"@{one_line(str(handle))}"


def show_messages(messages: Iterable[MailMessage], me: str) -> None:
    """Print messages, each with sender, time, encryption and id."""
    for number, message in enumerate(messages):
        if number:
            say()
        show_message(message, me)


def show_message(message: MailMessage, me: str) -> None:
    other = f" → {at(message.to_handle)}" if message.from_handle == me else ""
    who = f"{at(message.from_handle)}{other}"
    hidden = f"({one_line(message.error)})" if message.error else SEALED
    text = [hidden] if message.body is None else lines(message.body)
    draw = draw_message if on_terminal() else print_message
    draw(who, moment(message.created_at), notes_on(message), short(message.id), text)


def print_message(
    who: str, when: str, notes: list[MessageNote], name: str, text: list[str]
) -> None:
    """A message for pipes and files: a line about it, then its lines, indented."""
    say("  ".join([who, when, *(note.text for note in notes), name]))
    for line in text:
        say(f"    {line}".rstrip())


def draw_message(who: str, when: str, notes: list[MessageNote], name: str, text: list[str]) -> None:
    """The same on a terminal, wrapped inside its indentation."""
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    head = Text(who, style="bold green")
    head.append(f"  {when}", style="default not bold")
    for note in notes:
        head.append(f"  {note.text}", style=note.style)
    head.append(f"  {name}", style=FAINT)
    screen.print(head)
    screen.print(Padding(Text("\n".join(text)), (0, 0, 0, 4)))


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], nothing: str) -> None:
    """Rows under headings on a terminal, without them in a pipe; a sentence when there are none."""
    table = [list(row) for row in rows]
    if not table:
        say(nothing, err=True)
    elif on_terminal():
        draw_table(columns, table)
    else:
        for line in aligned(table):
            say(line)


class Entry(NamedTuple):
    """One of a list of things of which there is much to say."""

    head: Sequence[tuple[str, str]]
    """The line about it, in pieces with their styles."""
    details: Iterable[tuple[str, str]]
    """Sentences below it, with the style of each; an empty one is left out."""
    row: Sequence[str]
    """The same in columns, for pipes and files."""


def show_entries(entries: Sequence[Entry], nothing: str) -> None:
    """Entries below each other on a terminal, a line each in a pipe; a sentence if none."""
    terminal = Terminal()
    if not entries and nothing:
        say(nothing, err=True)
    if terminal.width is None:
        for line in aligned(entry.row for entry in entries):
            say(line)
        return
    for entry in entries:
        terminal.write(terminal.truncated(entry.head))
        for text, style in entry.details:
            # Paths and names have hyphens too, and are to be copied.
            for line in wrap(text, max(terminal.width - 2, 10), break_on_hyphens=False):
                terminal.write(f"  {terminal.styled(line, style)}")
    terminal.flush()


def draw_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table without lines; where the terminal is too narrow for it, one entry below the other."""
    from rich.table import Table
    from rich.text import Text

    widths = [max(len(cell) for cell in cells) for cells in zip(*rows, strict=True)]
    needed = sum(
        min(width, LEAST_WIDE) if column.wide else max(width, len(column.heading))
        for column, width in zip(columns, widths, strict=True)
    )
    if needed + GAP * (len(columns) - 1) > console().width:
        draw_entries(columns, rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, no_wrap=not column.wide, overflow="fold")
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(Text(cell, style=column.style) for column, cell in cells))
    console().print(table)


def draw_entries(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as lines of its short cells, uncut, with its long cells below."""
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    for row in rows:
        cells = [pair for pair in zip(columns, row, strict=True) if pair[1] not in ("", "-")]
        line = Text()
        for column, cell in cells:
            if column.wide:
                continue
            said = f"{column.heading.lower()} {cell}" if column.named else cell
            piece = Text(said, style=column.style)
            if line and line.cell_len + GAP + piece.cell_len > screen.width:
                screen.print(line)
                line = Text(" " * INDENT)
            elif line:
                line.append(" " * GAP)
            line.append_text(piece)
        screen.print(line)
        for column, cell in cells:
            if column.wide:
                screen.print(Padding(Text(cell, style=column.style), (0, 0, 0, INDENT)))


def show_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Print names and values a line each, without the empty ones."""
    rows = [(name, word(value)) for name, value in fields if value not in (None, "")]
    for (_, value), line in zip(rows, aligned(rows), strict=True):
        begin = len(line) - len(value)
        width = get_terminal_size().columns if on_terminal() else 0
        if len(line) <= width or width < begin + LEAST_WIDE:
            say(line)
            continue
        wrapped = wrap(value, width - begin, break_on_hyphens=False)
        say(line[:begin] + f"\n{' ' * begin}".join(wrapped))


NARROW: Final = 60
"""Columns below which things stand below each other."""


class Glyphs(NamedTuple):
    """The few signs beyond letters."""

    to_server: str
    to_client: str
    neither: str
    between: str
    bar: str
    cut: str


UNICODE: Final = Glyphs("→", "←", "·", "↔", "█", "…")
ASCII: Final = Glyphs("->", "<-", "--", "<->", "#", "...")

STYLES: Final = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "magenta": "35",
    "cyan": "36", "bold red": "1;31",
}  # fmt: skip


class Terminal:
    """Standard output, with its width and colours."""

    def __init__(self) -> None:
        self.on_terminal = on_terminal()
        self.width = shutil.get_terminal_size().columns if self.on_terminal else None
        self.glyphs = UNICODE if can_show("".join(UNICODE)) else ASCII
        self._coloured = coloured(sys.stdout)

    @property
    def narrow(self) -> bool:
        """Whether a line has no room for everything about a message."""
        return self.width is not None and self.width < NARROW

    def styled(self, text: str, style: str) -> str:
        """A text in a style, where there are styles."""
        if not style or not text or not self._coloured:
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def write(self, line: str) -> None:
        """A line that was made safe; it is seen once there is enough, or by `flush`."""
        sys.stdout.write(line + "\n")

    def flush(self) -> None:
        """Show the lines written so far."""
        sys.stdout.flush()

    def truncated(self, parts: Iterable[tuple[str, str]]) -> str:
        """Safe texts with their styles as one line, cut at its width."""
        left = self.width
        line: list[str] = []
        for text, style in parts:
            if left is None:
                line.append(self.styled(text, style))
                continue
            room = cells(text)
            if room > left:
                line.append(self.styled(cut(text, left, self.glyphs.cut), style))
                break
            line.append(self.styled(text, style))
            left -= room
        return "".join(line)


def can_show(text: str) -> bool:
    """Whether stdout has these signs."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def cells(text: str) -> int:
    """How many columns a text takes; some signs take two, and some none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, mark: str) -> str:
    """A text that takes at most so many columns, with a mark where something is missing."""
    if cells(text) <= width:
        return text
    if width <= len(mark):
        return mark[:width]
    if text.isascii():
        return text[: width - len(mark)] + mark
    from rich.cells import set_cell_size

    return set_cell_size(text, width - len(mark)).rstrip() + mark


def lapse(seconds: float) -> str:
    """How long something took, in as many digits as matter."""
    if seconds >= 60:
        return duration(seconds)
    if seconds >= 0.9995:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    thousandths = seconds * 1000
    digits = 0 if thousandths >= 99.5 else 1 if thousandths >= 9.95 else 2
    return f"{thousandths:.{digits}f} ms"


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the singular or the plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock(text: str) -> str:
    """A point in time as the reader's clock shows it."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "some time"


def label(method: str, name: str) -> str:
    return one_line(f"{method} {name}".strip())


def side(of: TapeSide) -> str:
    """One side of a conversation."""
    return one_line(f"{of.transport} {of.target}".strip())
