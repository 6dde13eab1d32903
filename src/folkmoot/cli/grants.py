"""`folkmoot grant`, `revoke` and `grants`: what people may do at the hub, running or not."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer

from folkmoot.cli.credentials import HandleArgument, checked_handle
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption
from folkmoot.cli.output import (
    complain,
    moment,
    on_terminal,
    say,
    say_json,
)
from folkmoot.cli.show import Column, at, tell_table

PatternsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PATTERN…",
        help="What they may do, such as 'files:read_*'; with a ! in front, what they may not.",
        show_default=False,
    ),
]
LeavingArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATTERN…", help="What to revoke, as granted.", show_default=False),
]
EverythingOption = Annotated[
    bool, typer.Option("--all", help="Revoke everything that was granted.", show_default=False)
]
WhoseArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="HANDLE", help="Show this person's rights, and where each comes from.",
        callback=checked_handle, show_default=False,
    ),
]  # fmt: skip

FROM = {
    "default": "every account",
    "everyone": "{name} is for everyone",
    "group": "group {name}",
    "settings": "settings file",
    "granted": "granted {when}",
}
"""Where a capability is from, in words."""


def grant(
    handle: HandleArgument,
    patterns: PatternsArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Grant or deny someone rights at the hub.

    For the operator, on the hub's own machine. A pattern is a capability, such as
    'mcp.request.tools/call:files:read_*', or one of its short forms: 'files' for a whole backend,
    'files:read_*' for tools, 'files://*' for resources, '!msg/send' to deny something. Names may
    also be written as clients list them: 'files_read_file'. Takes effect at once, also on a running
    hub.
    """
    hub = opened(config, data)
    answer = hub.ask("folkmoot/grant", {"handle": handle, "patterns": patterns})
    if as_json:
        say_json(answer)
    else:
        who = at(answer["handle"])
        for pattern in answer["granted"]:
            say(f"Granted to {who}: {pattern}")
        for pattern in answer["already"]:
            say(f"Already granted to {who}: {pattern}")
        hub.tell_when()
    if answer["warnings"]:
        complain(*answer["warnings"], kind="warning")


def revoke(
    handle: HandleArgument,
    patterns: LeavingArgument = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everything: EverythingOption = False,
    as_json: JsonOption = False,
) -> None:
    """Revoke what was granted with 'folkmoot grant'.

    Rights from the settings file are changed there. Takes effect at once, also on a running hub.
    """
    if bool(patterns) == everything:
        raise typer.BadParameter("give the patterns to revoke, or --all")
    hub = opened(config, data)
    arguments = {"handle": handle, "patterns": patterns or [], "everything": everything}
    answer = hub.ask("folkmoot/revoke", arguments)
    if as_json:
        say_json(answer)
        return
    for pattern in answer["revoked"]:
        say(f"Revoked from {at(answer['handle'])}: {pattern}")
    if answer["revoked"]:
        hub.tell_when()
    else:
        say(f"{at(answer['handle'])} was granted nothing.")


def grants(
    handle: WhoseArgument = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show who has which rights at the hub, and from where.

    With a HANDLE, shows all capabilities of that account; without one, everyone with rights beyond
    the defaults.
    """
    hub = opened(config, data)
    if handle is not None:
        answer = hub.ask("folkmoot/grants_of", {"handle": handle})
        if as_json:
            say_json(answer)
        else:
            tell_person(answer)
        return
    people, everyone = everybody(hub)
    if as_json:
        say_json({"everyone": everyone, "people": people})
        return
    rows = [(at(it["handle"]), how_much(it), note(it)) for it in people]
    columns = (Column("Handle", "bold"), Column("Holds", wide=True), Column("", "dim", wide=True))
    tell_table(columns, rows, "Nobody has rights beyond the defaults.")


def invite_for(
    handle: str, days: int, data: str | None, config: str | None, *, as_json: bool
) -> None:
    """Make the operator's invite for a handle, and show it this once."""
    hub = opened(config, data)
    answer = hub.ask("folkmoot/invite_for", {"handle": handle, "days": days})
    if as_json:
        say_json(answer)
        return
    say(answer["invite_url"])
    until = moment(answer["until"])
    who = answer["handle"]
    say(f"Anyone with this link can register as {at(who)}, once, until {until}.", err=True)
    say(
        f"It is not shown again. 'folkmoot invite --for {who}' replaces it with a new one.",
        err=True,
    )


def opened(config: str | None, data: str | None) -> OperatedHub:
    """A hub that has run before, and so can have accounts."""
    hub = OperatedHub(config, data)
    hub.require_database()
    return hub


def everybody(hub: OperatedHub) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Everyone who holds something of their own, and what all hold."""
    people: list[dict[str, Any]] = []
    after: str | None = ""
    while True:
        page = hub.ask("folkmoot/grants", {"after": after or None})
        people += page["people"]
        after = page["next"]
        if after is None:
            return people, page["everyone"]


def tell_person(answer: dict[str, Any]) -> None:
    """What one handle holds."""
    rows = [
        (text_of(it["capability"]), FROM[it["origin"]].format(
            name=it.get("name"), when=moment(it.get("at"))
        ))
        for it in answer["held"]
    ]  # fmt: skip
    if on_terminal() and too_wide(rows):
        for capability, origin in rows:
            say(capability)
            say(f"  {origin}")
    else:
        tell_table((Column("Capability", wide=True), Column("From", "dim")), rows, "Nothing.")
    if answer["account"] is None:
        who = answer["handle"]
        say(
            f"Nobody has the handle {at(who)} yet. 'folkmoot invite --for {who}' creates an "
            "invite.",
            err=True,
        )


def too_wide(rows: Sequence[tuple[str, ...]]) -> bool:
    """Whether a table of these would have to break its cells; patterns are to be copied."""
    widest = sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
    return widest > shutil.get_terminal_size().columns


def text_of(capability: Any) -> str:
    """A capability as one line."""
    if isinstance(capability, str):
        return capability
    return msgspec.json.encode(capability).decode()


def how_much(row: dict[str, Any]) -> str:
    """How many capabilities someone holds beyond everyone's."""
    told = [f"{row['settings']} in the settings"] if row["settings"] or row["groups"] else []
    if row["groups"]:
        told[0] += f" ({', '.join(row['groups'])})"
    if row["granted"]:
        told.append(f"{row['granted']} granted")
    return ", ".join(told) or "nothing"


def note(row: dict[str, Any]) -> str:
    """What is to be known about a handle."""
    if row["state"] == "nobody":
        return "nobody has this handle yet"
    return f"is {at(row['leads_to'])} now" if row["leads_to"] else ""
