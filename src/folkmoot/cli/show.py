"""How mail, people and tables look: plain and aligned in a pipe, with a little care on a terminal.

Everything here may have been written by someone else, so all of it goes through `cli.text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from folkmoot.cli.output import aligned, console, on_terminal, say
from folkmoot.cli.text import lines, moment, one_line, say_data
from folkmoot.core.uuids import SHORT, WHOLE

if TYPE_CHECKING:
    from folkmoot.client.methods import MailMessage

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


class Note(NamedTuple):
    """A word about a message, and how it looks on a terminal."""

    text: str
    style: str


def notes_on(message: MailMessage) -> list[Note]:
    """What there is to say about a message: whether it is new, how urgent, how it was encrypted."""
    mode, priority = message.encryption_mode, message.priority
    notes = [
        Note("new" if message.unread else "", "bold yellow"),
        Note(word(priority) if priority != "normal" else "", "bold red"),
        Note(word(MODES.get(mode, mode)), FAINT),
    ]
    return [note for note in notes if note.text]


def at(handle: Any) -> str:
    """A handle as people write it."""
    return f"@{one_line(str(handle))}"


def tell_messages(messages: Iterable[MailMessage], me: str) -> None:
    """Messages, each with who, when, how it was encrypted and the id one answers to."""
    for number, message in enumerate(messages):
        if number:
            say()
        tell_message(message, me)


def tell_message(message: MailMessage, me: str) -> None:
    """One message."""
    other = f" → {at(message.to_handle)}" if message.from_handle == me else ""
    who = f"{at(message.from_handle)}{other}"
    hidden = f"({one_line(message.error)})" if message.error else SEALED
    text = [hidden] if message.body is None else lines(message.body)
    draw = draw_message if on_terminal() else print_message
    draw(who, moment(message.created_at), notes_on(message), short(message.id), text)


def print_message(who: str, when: str, notes: list[Note], name: str, text: list[str]) -> None:
    """A message for pipes and files: a line about it, then its lines, indented."""
    say("  ".join([who, when, *(note.text for note in notes), name]))
    for line in text:
        say(f"    {line}".rstrip())


def draw_message(who: str, when: str, notes: list[Note], name: str, text: list[str]) -> None:
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


def tell_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], nothing: str) -> None:
    """Rows under headings on a terminal, without them in a pipe; a sentence when there are none."""
    table = [list(row) for row in rows]
    if not table:
        say(nothing, err=True)
    elif on_terminal():
        draw_table(columns, table)
    else:
        for line in aligned(table):
            say(line)


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
    """Each row as lines of its short cells, none of them cut, with its long ones below it."""
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


def tell_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one each line; what is empty is left out."""
    rows = [(name, word(value)) for name, value in fields if value not in (None, "")]
    for (_, value), line in zip(rows, aligned(rows), strict=True):
        begin = len(line) - len(value)
        width = get_terminal_size().columns if on_terminal() else 0
        if len(line) <= width or width < begin + LEAST_WIDE:
            say(line)
            continue
        wrapped = wrap(value, width - begin, break_on_hyphens=False)
        say(line[:begin] + f"\n{' ' * begin}".join(wrapped))


def tell_answer(answer: Any, *, as_json: bool) -> None:
    """What an operation answers that no command shows in a way of its own."""
    if as_json:
        say_data(answer)
        return
    members = msgspec.to_builtins(answer)
    rows = [(name.replace("_", " ").capitalize(), shown(it)) for name, it in members.items()]
    for line in aligned(rows):
        say(line)


def shown(value: Any) -> str:
    """A member of an answer in one line."""
    if value is None or type(value) is bool:
        return "yes" if value else "-" if value is None else "no"
    if type(value) is list and all(type(each) is str for each in value):
        return ", ".join(map(word, value)) or "-"
    plain = isinstance(value, str | int | float)
    return word(value if plain else msgspec.json.encode(value).decode())
