"""Messages on a terminal, wide or narrow: colours by participant, kinds as chips."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.style import Style
from rich.text import Text

from folkmoot.cli.room.colours import RED, colour_of
from folkmoot.cli.room.look import Look, Tone

if TYPE_CHECKING:
    from rich.console import Console

NARROW: Final = 60
"""Columns below which the time has no column of its own."""
DIM: Final = Style(dim=True)
MENTION: Final = Style(bold=True, reverse=True)
INDENT: Final = Text("  ")


def draw(screen: Console, look: Look, me: str) -> None:
    """One message, as wide as the screen is now."""
    screen.print(drawn(screen, look, me), soft_wrap=True)


def drawn(screen: Console, look: Look, me: str) -> Text:
    """One message in lines; all but its first are indented, so that nobody writes another's."""
    when, head, body = Text(clock(look.ts), style=DIM), heading(look), said(look, me)
    if look.tone is Tone.ASIDE:
        head.stylize(DIM)
        body.stylize(DIM)
    if screen.width >= NARROW:
        between = "\n" if len(look.text) > 1 and look.chip else " "
        margin = Text.assemble(when, " ")
        return hung(screen, joined(head, body, between), margin, first=margin)
    if not head.plain or not body.plain:
        return hung(screen, joined(joined(head, when, " "), body, " "), INDENT)
    top = hung(screen, joined(head, when, " "), INDENT)
    return joined(top, hung(screen, body, INDENT, first=INDENT), "\n")


def hung(screen: Console, text: Text, margin: Text, *, first: Text | None = None) -> Text:
    """A text wrapped to the screen: `margin` is as wide as what stands in front of each line."""
    width = max(screen.width - margin.cell_len, 1)
    wrapped = text.wrap(screen, width, overflow="fold")
    for line in wrapped:
        line.rstrip()
    blank, begin = " " * margin.cell_len, Text() if first is None else first
    return Text("\n").join(
        Text.assemble(blank if number else begin, line) for number, line in enumerate(wrapped)
    )


def joined(first: Text, second: Text, between: str) -> Text:
    """Two texts as one; an empty one is as if it were not there."""
    if not first.plain or not second.plain:
        return second if second.plain else first
    return Text.assemble(first, between, second)


def heading(look: Look) -> Text:
    """Who, to whom, what kind, and which messages it is about."""
    head = Text()
    if look.who and not (look.tone is Tone.ASIDE and not look.chip):
        head.append_text(participant(look.who))
        if look.to:
            head.append(" → ", style=DIM)
            head.append_text(Text(", ").join(map(participant, look.to)))
    if look.chip:
        head = joined(head, chip(look), " ")
    if look.about:
        numbers = " ".join(f"#{seq}" for seq in look.about)
        head = joined(head, Text(f"re {numbers}", style=DIM), " ")
    if look.seq is not None and look.chip:
        head = joined(head, Text(f"#{look.seq}", style=DIM), " ")
    return head


def participant(name: str) -> Text:
    """A name in its colour."""
    return Text(name, style=Style(bold=True, color=f"color({colour_of(name)})"))


def chip(look: Look) -> Text:
    """A kind as a small tag."""
    colour = RED if look.tone is Tone.FAILED else look.colour
    return Text(f" {look.chip} ", style=Style(reverse=True, color=f"color({colour})"))


def said(look: Look, me: str) -> Text:
    """What it says, with every mention of the reader marked."""
    text = Text("\n".join(look.text))
    if look.cut:
        text.append("\n… there is more than is shown here", style=DIM)
    if me and not text.highlight_regex(mention_of(me), MENTION) and me in look.mentions:
        # Meant, though not by name.
        return Text.assemble((f"@{me}", MENTION), " ", text)
    return text


def mention_of(me: str) -> re.Pattern[str]:
    """Where a text speaks to someone."""
    return re.compile(rf"(?<![\w@])@{re.escape(me)}(?![\w-])", re.IGNORECASE)


def clock(ts: str) -> str:
    """The hour and minute of a moment where the reader is."""
    try:
        return datetime.fromisoformat(ts).astimezone().strftime("%H:%M")
    except (ValueError, OverflowError, OSError):
        return "--:--"
