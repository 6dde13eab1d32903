"""`folkmoot grant`, `revoke` and `rights`: what people may do at the hub, running or not."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec
import typer

from folkmoot.cli.commands import (
    Note,
    Output,
    Table,
    every,
    group,
    opened_hub,
    operator_command,
)
from folkmoot.cli.credentials import HandleArgument, checked_handle
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import argument, flag, given_arguments, option
from folkmoot.cli.output import (
    complain,
    moment,
    on_terminal,
    say,
)
from folkmoot.cli.show import Column, at, show_table
from folkmoot.settings.types import is_loopback

if TYPE_CHECKING:
    from folkmoot.gateway.access import GrantRow, PersonView

PatternsArgument = Annotated[
    list[str],
    argument(
        "PATTERN…",
        "What they can do, such as 'files:read_*'; with a ! in front, what they can't.",
    ),
]
LeavingArgument = Annotated[list[str] | None, argument("PATTERN…", "What to revoke, as granted.")]
EverythingOption = Annotated[bool, flag("--all", "Revoke everything that was granted.")]
WhoseArgument = Annotated[
    str | None,
    argument("HANDLE", "Show this person's rights, and where each comes from.", checked_handle),
]

FROM = {
    "default": "every account",
    "everyone": "{name} is for everyone",
    "group": "group {name}",
    "settings": "settings file",
    "granted": "granted {when}",
}


@operator_command
def grant(hub: OperatedHub, handle: HandleArgument, patterns: PatternsArgument) -> Output:
    """Grant or deny someone rights at the hub.

    For the operator, on the hub's own machine. A pattern is a capability, such as
    'mcp.request.tools/call:files:read_*', or one of its short forms: 'files' for a whole backend,
    'files:read_*' for tools, 'files://*' for resources, '!msg/send' to deny something. Names may
    also be written as clients list them: 'files_read_file'. Takes effect at once, also on a running
    hub.
    """
    answer = hub.grant(handle, patterns)
    if answer.warnings:
        complain(*answer.warnings, kind="warning")
    who = at(answer.handle)
    granted = [f"Granted to {who}: {pattern}" for pattern in answer.granted]
    already = [f"Already granted to {who}: {pattern}" for pattern in answer.already]
    return Output(answer, *granted, *already, starting(hub))


def starting(hub: OperatedHub) -> Note | None:
    """From when on a change holds, where that is not at once."""
    return None if hub.runs else Note("No hub is running. This takes effect at its next start.")


@operator_command
def revoke(
    hub: OperatedHub,
    handle: HandleArgument,
    patterns: LeavingArgument = None,
    *,
    everything: EverythingOption = False,
) -> Output:
    """Revoke what was granted with 'folkmoot grant'.

    Rights from the settings file are changed there. Takes effect at once, also on a running hub.
    """
    if bool(patterns) == everything:
        raise typer.BadParameter("give the patterns to revoke, or --all")
    answer = hub.revoke(handle, patterns=patterns, everything=everything)
    who = at(answer.handle)
    revoked = [f"Revoked from {who}: {pattern}" for pattern in answer.revoked]
    if not revoked:
        return Output(answer, f"{who} was granted nothing.")
    return Output(answer, *revoked, starting(hub))


@operator_command
def rights(hub: OperatedHub, handle: WhoseArgument = None) -> Output:
    """Show who has which rights at the hub, and from where.

    With a HANDLE, shows all capabilities of that account; without one, everyone with rights beyond
    the defaults.
    """
    if handle is not None:
        answer = hub.get_grants(handle)
        return Output(answer, lambda: show_person(answer))
    people = list(every(hub.list_grants, "people", by="after"))
    rows = [(at(it.handle), how_much(it), note(it)) for it in people]
    columns = (Column("Handle", "bold"), Column("Holds", wide=True), Column("", "dim", wide=True))
    table = Table(columns, rows, "No one has extra rights.")
    return Output({"everyone": hub.list_grants().everyone, "people": people}, table)


@operator_command
def judge_call(
    hub: OperatedHub,
    handle: Annotated[str, argument("HANDLE", "Who would call it.", checked_handle)],
    tool: Annotated[str, argument("TOOL", "The tool, such as files:read.")],
    arguments: Annotated[
        str | None, option("--arguments", "JSON", "The arguments of the call, as a JSON object.")
    ] = None,
) -> Output:
    """Tell what would become of a call, and by which rule.

    Nothing is called. The exit code is 0 if it would be made, and 1 if a person would be asked
    first, or it would be refused.
    """
    found = hub.judge_call(handle, tool, arguments=given_arguments(arguments))
    return Output(found, found.sentence, failed=found.verdict != "allow")


policy_app = group(
    {"test": judge_call},
    """Look at the rules by which people are asked before calls.

    They are in the settings file, under [asks.NAME].
    """,
)


def reach_of(link: str) -> list[Note]:
    """What is said of an invitation's link that not everyone can open."""
    host = urlsplit(link).hostname or ""
    where = (
        "on this machine" if is_loopback(host) else "in your network" if is_private(host) else ""
    )
    return (
        [Note(f"The link works only {where}. To invite others, set public_url.")] if where else []
    )


def is_private(host: str) -> bool:
    """Whether a host is an address of a network that is not the internet."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return False


def invite_for(handle: str, days: int, data: str | None, config: str | None) -> Output:
    """Make the operator's invite for a handle, and show it this once."""
    hub = opened_hub(config, data)
    made = hub.invite_for(handle, days=days)
    return Output(
        made,
        made.invite_url,
        Note(
            f"Anyone with this link can register as {at(made.handle)}, once, "
            f"until {moment(made.until)}."
        ),
        Note(
            f"It is not shown again. 'folkmoot invite --for {made.handle}' replaces it with a "
            "new one."
        ),
        *reach_of(made.invite_url),
    )


def show_person(answer: PersonView) -> None:
    """Print the grants of one handle."""
    rows = [
        (text_of(it.capability), FROM[it.origin].format(name=it.name, when=moment(it.at)))
        for it in answer.held
    ]
    if on_terminal() and too_wide(rows):
        for capability, origin in rows:
            say(capability)
            say(f"  {origin}")
    else:
        show_table((Column("Capability", wide=True), Column("From", "dim")), rows, "Nothing.")
    if answer.account is None:
        who = answer.handle
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
    if isinstance(capability, str):
        return capability
    return msgspec.json.encode(capability).decode()


def how_much(row: GrantRow) -> str:
    """How many capabilities someone holds beyond everyone's."""
    told = [f"{row.settings} in the settings"] if row.settings or row.groups else []
    if row.groups:
        told[0] += f" ({', '.join(row.groups)})"
    if row.granted:
        told.append(f"{row.granted} granted")
    return ", ".join(told) or "nothing"


def note(row: GrantRow) -> str:
    """A note about a handle."""
    if row.state == "nobody":
        return "nobody has this handle yet"
    return f"is {at(row.leads_to)} now" if row.leads_to else ""
