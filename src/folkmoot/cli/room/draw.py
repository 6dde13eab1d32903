"""Messages on a terminal, wide or narrow, in sentences or with their kinds.

Each participant has a colour. Where kinds are shown they are chips, small tags in a colour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.style import Style
from rich.text import Text

from folkmoot.cli.room.messages import RED, Look, Tone, colour_of

if TYPE_CHECKING:
    from rich.console import Console

NARROW: Final = 60
"""Columns below which the time has no column of its own."""
DIM: Final = Style(dim=True)
MENTION: Final = Style(bold=True, reverse=True)
BOLD: Final = Style(bold=True)
INDENT: Final = Text("  ")
EARLIER: Final = "an earlier message"
UNKNOWN: Final = {"about": EARLIER, "origin": EARLIER, "to": "everyone"}
"""What is said where a place in a sentence cannot be filled in."""


PLACE: Final = re.compile(r"\[([^\[\]]*)\]|\{(\w+)\}")
"""What is filled in in a sentence, and what stands in brackets with it."""


def draw(screen: Console, look: Look, me: str, *, raw: bool = False) -> None:
    """One message, as wide as the screen is now; with its kind if `raw`."""
    if look.repeats and not raw:
        return
    screen.print(drawn(screen, look, me, raw=raw), soft_wrap=True)


def drawn(screen: Console, look: Look, me: str, *, raw: bool = False) -> Text:
    """One message in lines, all but the first indented, so that no text can pose as a message."""
    raw = raw or look.words is None
    lines = look.text if raw else look.brief
    head = heading(look) if raw else sentence(look)
    when, body = Text(clock(look.ts), style=DIM), said(look, lines, me)
    if not raw:
        body.append_text(reference(look, body))
    if look.tone is Tone.ASIDE:
        head.stylize(DIM)
        body.stylize(DIM)
    if screen.width >= NARROW:
        below = len(lines) > 1 and bool(look.chip) if raw else is_below(look)
        between = "\n" if below else " "
        if not raw and head.plain and body.plain and ": " not in (look.words or ""):
            head.append(":")
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
    """Two texts with a separator between them, left out when either is empty."""
    if not first.plain or not second.plain:
        return second if second.plain else first
    return Text.assemble(first, between, second)


def heading(look: Look) -> Text:
    """The sender, recipients, kind and related messages of a message."""
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


def sentence(look: Look) -> Text:
    """The sentence that tells a message in words."""
    head = Text() if look.nameless or not look.who else participant(look.who)
    words = filled(look.words or "", look)
    if look.tone is Tone.FAILED:
        words.stylize(Style(color=f"color({RED})"))
    return joined(head, words, " ")


def filled(words: str, look: Look) -> Text:
    """A sentence with its places filled in."""
    values: dict[str, Text] = {
        "to": Text(", ").join(map(participant, look.to)),
        "about": Text(" ").join(Text(f"#{seq}", BOLD) for seq in look.about),
        "origin": Text(" ").join(Text(f"#{seq}", BOLD) for seq in look.origin),
        "number": Text("" if look.seq is None else f"#{look.seq}", BOLD),
        "what": Text(look.what, BOLD),
    }
    text, place = Text(), 0
    for match in PLACE.finditer(words):
        text.append(words[place : match.start()])
        place = match.end()
        optional, name = match.groups()
        if optional is None:
            value = values[name]
            text.append_text(value if value.plain else Text(UNKNOWN.get(name, "")))
        elif all(values[inner].plain for inner in re.findall(r"\{(\w+)\}", optional)):
            text.append_text(filled(optional, look))
    text.append(words[place:])
    return text


def reference(look: Look, body: Text) -> Text:
    """The number others refer to a request by, or the one an answer is about."""
    number = ""
    if look.kind.startswith("mcp.request.") and look.brief and look.seq is not None:
        number = f"#{look.seq}"
    elif look.kind.startswith("mcp.response.") and look.origin and look.tone is not Tone.ASIDE:
        number = f"re #{look.origin[0]}"
    return Text(f"{'  ' if body.plain else ''}{number}" if number else "", DIM)


def is_below(look: Look) -> bool:
    """Whether what a message says begins on a line of its own: arguments, and long answers."""
    if look.kind.startswith("mcp.proposal."):
        return bool(look.brief)
    return look.kind.startswith("mcp.response.") and len(look.brief) > 1


def participant(name: str) -> Text:
    """A name in its colour."""
    return Text(name, style=Style(bold=True, color=f"color({colour_of(name)})"))


def chip(look: Look) -> Text:
    """A kind as a small tag."""
    colour = RED if look.tone is Tone.FAILED else look.colour
    return Text(f" {look.chip} ", style=Style(reverse=True, color=f"color({colour})"))


def said(look: Look, lines: Sequence[str], me: str) -> Text:
    """What it says, with every mention of the reader marked."""
    text = Text("\n".join(lines))
    if look.cut:
        text.append("\n… cut here; the message is longer", style=DIM)
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
