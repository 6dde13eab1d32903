"""`folkmoot audit`: the hub's audit log, for operators."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from folkmoot.cli.commands import Output, Table
from folkmoot.cli.credentials import checked_handle
from folkmoot.cli.limits import MAX_AUDIT_LINES
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    JsonOption,
    number,
    option,
)
from folkmoot.cli.output import moment, on_terminal, one_line, say
from folkmoot.cli.show import Column, counted, word
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.operations.operator.hub import AuditLine

PAGE = 500
SPAN = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}

LastOption = Annotated[int, number("--last", 1, MAX_AUDIT_LINES, "How many lines.  [default: 50]")]


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
ServerOption = Annotated[
    str | None, option("--server", "NAME", "Only calls of this server behind the hub.")
]
AboutOption = Annotated[
    str | None, option("--about", "TEXT", "Only lines whose subject contains this text.")
]
UntilOption = Annotated[
    str | None, option("--until", "TIME", "Only lines older than 30m, 12h, 7d or 2w.", checked_span)
]
OutcomeOption = Annotated[
    str | None, option("--outcome", "GLOB", "Only this outcome: ok, error for any but ok, a code.")
]
TextOption = Annotated[str | None, option("--text", "TEXT", "Only lines that contain this text.")]
FollowOption = Annotated[
    bool, typer.Option("--follow", "-f", help="Show new lines as they come.", show_default=False)
]
ExportOption = Annotated[
    Path | None,
    option("--export", "FILE", "Write every line that matches to a new file, as JSON lines."),
]


def audit(
    last: LastOption = 50,
    since: SinceOption = None,
    by: ByOption = None,
    action: ActionOption = None,
    room: RoomOption = None,
    server: ServerOption = None,
    about: AboutOption = None,
    until: UntilOption = None,
    outcome: OutcomeOption = None,
    text: TextOption = None,
    export: ExportOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    follow: FollowOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the audit log: who did what, the newest line last.

    For the operator, on the hub's own machine, with or without a running hub. Lines are kept for 90
    days; the setting audit.keep_days changes that. With --follow, --json shows an object in each
    line.
    """
    if follow and export is not None:
        raise typer.BadParameter("give --follow or --export, not both")
    hub = OperatedHub(config, data)
    hub.require_database()
    wanted = {
        "since": None if since is None else int(time.time()) - seconds(since),
        "by": by,
        "action": action,
        "room": room,
        "server": server,
        "about": None if about is None else f"*{about}*",
        "until": None if until is None else int(time.time()) - seconds(until),
        "outcome": outcome,
        "text": text,
    }
    if export is not None:
        count = write_all(hub, wanted, export.expanduser().absolute())
        say(f"Wrote {counted(count, 'audit line')} to {export}.")
        return
    found = newest(hub, wanted, last)
    if follow:
        show_as_they_come(hub, wanted, found, as_json=as_json)
        return
    rows = [(moment(it.at), word(it.action), word(it.by), what(it), result(it)) for it in found]
    columns = (Column("When", "dim"), Column("Action", "bold"), Column("By"),
               Column("About", wide=True), Column("", "dim", wide=True))  # fmt: skip
    nothing = "No audit lines match." if any(wanted.values()) else "Nothing yet."
    Output({"lines": found}, Table(columns, rows, nothing)).show(as_json=as_json)


def newest(hub: OperatedHub, wanted: dict[str, Any], most: int) -> list[AuditLine]:
    """The newest lines that fit, the newest last."""
    found: list[AuditLine] = []
    while len(found) < most:
        limit = min(PAGE, most - len(found))
        before = found[-1].id if found else None
        page = hub.read_audit(**wanted, limit=limit, before=before).lines
        found += page
        if len(page) < limit:
            break
    return found[::-1]


def later(hub: OperatedHub, wanted: dict[str, Any], after: int) -> list[AuditLine]:
    """The first lines after an id that fit, the oldest first."""
    return hub.read_audit(**wanted, limit=PAGE, after=after).lines


def show_as_they_come(
    hub: OperatedHub, wanted: dict[str, Any], found: list[AuditLine], *, as_json: bool
) -> None:
    """Print the lines found, then new ones as they come, until interrupted."""
    place = found[-1].id if found else 0
    with suppress(KeyboardInterrupt):
        while True:
            for line in found:
                say(msgspec.json.encode(line).decode() if as_json else plain(line))
            if not found:
                time.sleep(1.0)
            found = later(hub, wanted, place)
            place = found[-1].id if found else place


def plain(line: AuditLine) -> str:
    """A line by itself, without columns."""
    parts = (moment(line.at), word(line.action), word(line.by), what(line), result(line))
    return "  ".join(filter(None, parts))


def write_all(hub: OperatedHub, wanted: dict[str, Any], target: Path) -> int:
    """Write every line that fits to a file that only its owner can read; how many there were."""
    count = place = 0
    try:
        with open(target, "xb", opener=partial(os.open, mode=0o600)) as file:
            while found := later(hub, wanted, place):
                file.writelines(msgspec.json.encode(line) + b"\n" for line in found)
                count += len(found)
                place = found[-1].id
    except FileExistsError:
        raise e.ExportFailed(f"{target}: already exists. Give the name of a new file.") from None
    except OSError as error:
        raise e.ExportFailed(f"{target}: cannot be written: {error.strerror}.") from error
    return count


def seconds(span: str) -> int:
    """A time span in seconds."""
    match = SPAN.fullmatch(span.strip().lower())
    return int(match[1]) * UNITS[match[2]] if match else 0


def what(line: AuditLine) -> str:
    """What a line is about, and in which room."""
    about = word(line.about)
    return f"{about} in {one_line(line.room)}" if line.room else about


def result(line: AuditLine) -> str:
    """The outcome of an audited action, with its details."""
    told = [one_line(line.outcome)] if line.outcome else []
    if line.seconds:
        told.append(f"{line.seconds:.3g}s")
    for name, value in line.detail.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if value not in (None, "", {}, []):
            told.append(one_line(shown if name == "detail" else f"{name}={shown}"))
    text = " ".join(told)
    # On a terminal a line of many arguments would push the others away.
    return f"{text[:119]}…" if on_terminal() and len(text) > 120 else text
