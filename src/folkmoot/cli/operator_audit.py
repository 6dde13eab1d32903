"""`folkmoot audit`: who did what at a hub, for whoever runs it."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any

import msgspec
import typer

from folkmoot.cli.asking import checked_handle
from folkmoot.cli.operator import Operated
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, number, option
from folkmoot.cli.output import on_terminal
from folkmoot.cli.show import Column, tell_table, word
from folkmoot.cli.text import moment, one_line, say_data

MOST = 10_000
PAGE = 500
SPAN = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}

LastOption = Annotated[int, number("--last", 1, MOST, "How many lines.  [default: 50]")]


def checked_span(value: str | None) -> Any:
    """A time span, checked before the command begins."""
    if value is not None and SPAN.fullmatch(value.strip().lower()) is None:
        raise typer.BadParameter(f"must be a time such as 30m, 12h or 7d, not {value!r}")
    return value


SinceOption = Annotated[
    str | None,
    option("--since", "TIME", "Only lines of the last 30m, 12h, 7d or 2w.", checked_span),
]
ByOption = Annotated[
    str | None,
    option("--by", "HANDLE", "Only what this handle did; operator is you.", checked_handle),
]
ActionOption = Annotated[
    str | None, option("--action", "GLOB", "Only these actions, such as 'account.*'.")
]
RoomOption = Annotated[str | None, option("--room", "NAME", "Only lines about this room.")]
AboutOption = Annotated[
    str | None, option("--about", "TEXT", "Only lines whose subject contains this text.")
]


def audit(
    last: LastOption = 50,
    since: SinceOption = None,
    by: ByOption = None,
    action: ActionOption = None,
    room: RoomOption = None,
    about: AboutOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show who did what, the newest line last.

    For the operator, on the hub's own machine, with or without a running hub. Lines are kept for 90
    days; the setting audit.keep_days changes that.
    """
    hub = Operated(config, data)
    hub.require_database()
    wanted = {
        "since": None if since is None else int(time.time()) - seconds(since),
        "by": by,
        "action": action,
        "room": room,
        "about": None if about is None else f"*{about}*",
    }
    found = newest(hub, wanted, last)
    if as_json:
        say_data({"lines": found})
        return
    rows = [
        (moment(it["at"]), word(it["action"]), word(it["by"]), what(it), result(it)) for it in found
    ]
    columns = (Column("When", "dim"), Column("Action", "bold"), Column("By"),
               Column("About", wide=True), Column("", "dim", wide=True))  # fmt: skip
    tell_table(columns, rows, "No audit lines match." if any(wanted.values()) else "Nothing yet.")


def newest(hub: Operated, wanted: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """The newest lines that fit, the newest last."""
    found: list[dict[str, Any]] = []
    while len(found) < most:
        limit = min(PAGE, most - len(found))
        before = found[-1]["id"] if found else None
        page = hub.ask("folkmoot/audit", {**wanted, "limit": limit, "before": before})["lines"]
        found += page
        if len(page) < limit:
            break
    return found[::-1]


def seconds(span: str) -> int:
    """A time span in seconds."""
    match = SPAN.fullmatch(span.strip().lower())
    return int(match[1]) * UNITS[match[2]] if match else 0


def what(line: dict[str, Any]) -> str:
    """What a line is about, and in which room."""
    about = word(line["about"])
    return f"{about} in {one_line(line['room'])}" if line.get("room") else about


def result(line: dict[str, Any]) -> str:
    """What came of it, and what else is known."""
    told = [one_line(line["outcome"])] if line.get("outcome") else []
    for name, value in line.get("detail", {}).items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if value not in (None, "", {}, []):
            told.append(one_line(shown if name == "detail" else f"{name}={shown}"))
    text = " ".join(told)
    # On a terminal a line of many arguments would push the others away.
    return f"{text[:119]}…" if on_terminal() and len(text) > 120 else text
