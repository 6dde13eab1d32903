"""How mail, people and tables look: plain and aligned in a pipe, with a little care on a terminal.

Everything here may have been written by someone else, so all of it goes through `cli.text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from folkmoot.cli.output import aligned, console, on_terminal, say
from folkmoot.cli.text import lines, moment, one_line

SEALED = "(end-to-end encrypted: only the app that holds the key can read it)"


class Column(NamedTuple):
    """One column of a table: its heading and how it looks on a terminal."""

    heading: str
    style: str = ""
    wide: bool = False


def word(value: Any) -> str:
    """A short text of someone else's; a dash where there is none."""
    return one_line(str(value)) if value not in (None, "") else "-"


def at(handle: Any) -> str:
    """A handle as people write it."""
    return f"@{one_line(str(handle))}"


def tell_messages(messages: Iterable[dict[str, Any]], me: str) -> None:
    """Messages, each with who, when and the id one answers to."""
    for number, message in enumerate(messages):
        if number:
            say()
        tell_message(message, me)


def tell_message(message: dict[str, Any], me: str) -> None:
    """One message."""
    other = f" → {at(message.get('to_handle'))}" if message.get("from_handle") == me else ""
    who = f"{at(message.get('from_handle'))}{other}"
    notes = [message.get("priority")] if message.get("priority") not in (None, "normal") else []
    when = moment(message.get("created_at"))
    body = message.get("body")
    text = lines(str(body)) if body is not None else [SEALED]
    draw = draw_message if on_terminal() else print_message
    draw(who, when, [word(note) for note in notes], word(message.get("id")), text)


def print_message(who: str, when: str, notes: list[str], name: str, text: list[str]) -> None:
    """A message for pipes and files: a line about it, then its lines, indented."""
    say("  ".join([who, when, *notes, name]))
    for line in text:
        say(f"    {line}".rstrip())


def draw_message(who: str, when: str, notes: list[str], name: str, text: list[str]) -> None:
    """The same on a terminal, wrapped inside its indentation."""
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    head = Text(who, style="bold green")
    head.append(f"  {when}", style="default not bold")
    for note in notes:
        head.append(f"  {note}", style="bold red")
    head.append(f"  {name}", style="dim not bold")
    screen.print(head, soft_wrap=True)
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


def draw_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """A table without lines."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, no_wrap=not column.wide, overflow="fold")
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(Text(cell, style=column.style) for column, cell in cells))
    console().print(table)


def tell_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one each line; what is empty is left out."""
    for line in aligned([(name, word(value)) for name, value in fields if value not in (None, "")]):
        say(line)
