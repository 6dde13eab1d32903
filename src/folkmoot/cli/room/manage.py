"""Rooms themselves: list, make, show, change and delete them, and ask people in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import typer

from folkmoot.cli.asking import AsOption, UrlOption
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import complain, duration, say
from folkmoot.cli.room import options as given
from folkmoot.cli.room.rest import RoomsClient, entrance, listed
from folkmoot.cli.room.tellers import allowed
from folkmoot.cli.show import Column, at, tell_fields, tell_table, word
from folkmoot.cli.text import moment, say_data

COLUMNS = (
    Column("Room", "bold"), Column("Access"), Column("You are"), Column("Here", named=True),
    Column("Messages", named=True), Column("Owners", wide=True),
)  # fmt: skip


def rooms_of(room: str | None, url: str | None, name: str | None) -> RoomsClient:
    """The hub's rooms, as the one who was meant."""
    return RoomsClient(entrance(room, url, name))


def list_rooms(
    url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False
) -> None:
    """List the rooms you can see."""
    client = rooms_of(None, url, handle)
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        answer = client.page(cursor)
        found += listed(answer.get("rooms"))
        cursor = answer.get("next_cursor")
        if not cursor:
            break
    if as_json:
        say_data({"rooms": found})
    else:
        tell_table(COLUMNS, map(row, found), "No rooms. 'folkmoot room create NAME' makes one.")


def row(room: dict[str, Any]) -> tuple[str, ...]:
    """One room in a line."""
    return (
        word(room.get("name")),
        word(room.get("access")),
        word(room.get("role")),
        word(room.get("participants")),
        word(room.get("last_seq")),
        " ".join(map(at, room.get("owners") or [])),
    )


def create(
    name: given.NewRoomArgument,
    access: given.AccessOption = None,
    capability: given.CapabilityOption = None,
    grant: given.GrantOption = None,
    backend: given.BackendOption = None,
    quorum: given.QuorumOption = None,
    proposal_seconds: given.ProposalSecondsOption = None,
    request_seconds: given.RequestSecondsOption = None,
    progress_seconds: given.ProgressSecondsOption = None,
    loop_guard: given.LoopGuardOption = None,
    keep_messages: given.KeepMessagesOption = None,
    keep_days: given.KeepDaysOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    memory: given.MemoryOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a room that you own."""
    spec = given.without_none(
        name=name,
        access=access,
        durable=False if memory else None,
        capabilities=[given.capability(text) for text in capability or ()],
        grants=given.grants(grant),
        backends=backend,
        policy=given.without_none(
            quorum=quorum, proposal_seconds=proposal_seconds, request_seconds=request_seconds,
            progress_seconds=progress_seconds, loop_guard=loop_guard,
            keep_messages=keep_messages, keep_days=keep_days,
        ),
    )  # fmt: skip
    made = rooms_of(None, url, handle).create(spec)
    if as_json:
        say_data(made)
        return
    say(f"Created the room {word(made.get('name'))}, {OPENNESS.get(made.get('access'), '')}.")
    say(f"To enter it: folkmoot room join {word(made.get('name'))}")


OPENNESS: dict[Any, str] = {
    "open": "open to everyone with an account",
    "invite": "for invited people only",
    "private": "for invited people only, and hidden from everyone else",
}


def show(
    name: given.RoomArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a room, and who is in it now."""
    client = rooms_of(name, url, handle)
    room = client.get(name)
    present = client.participants(name)
    if as_json:
        say_data({**room, "present": present})
        return
    tell_room(room)
    if present:
        say()
        rows = [(word(it.get("id")), word(it.get("type")), word(it.get("role"))) for it in present]
        tell_table((Column("Here now", "bold"), Column("Type"), Column("Role")), rows, "")


def seconds(value: Any) -> str:
    """A time span of the policy."""
    return duration(value) if isinstance(value, int | float) and value >= 1 else word(value)


POLICY: dict[str, tuple[str, Callable[[Any], str]]] = {
    "quorum": (
        "Rejections",
        lambda value: f"{word(value)} close{'s' if value == 1 else ''} a proposal",
    ),
    "proposal_seconds": ("Proposals wait", seconds),
    "request_seconds": ("Requests wait", seconds),
    "progress_seconds": ("With progress", seconds),
    "loop_guard": (
        "Loop guard",
        lambda value: f"after {word(value)} answers between agents" if value else "off",
    ),
    "keep_messages": ("Keeps", lambda value: f"the latest {word(value)} messages"),
    "keep_days": ("Keeps them", lambda value: f"{word(value)} days" if value else "forever"),
}
"""The members of a policy, and how each is told."""


def span(first: Any, last: Any) -> str:
    """Which messages there are, by their numbers."""
    if not isinstance(first, int) or not isinstance(last, int) or last < first:
        return "none"
    return f"{first} to {last}"


def made_at(ts: Any) -> str:
    """When a room was made, as the reader's clock shows it."""
    try:
        return moment(datetime.fromisoformat(str(ts)).timestamp())
    except (ValueError, OverflowError):
        return word(ts)


def tell_room(room: dict[str, Any]) -> None:
    """How a room is set."""
    policy = room.get("policy") or {}
    held = room.get("grants") or {}
    tell_fields(
        [
            ("Room", room.get("name")),
            ("Access", room.get("access")),
            ("History", "kept" if room.get("durable") else "in memory only"),
            ("Messages", span(room.get("first_seq"), room.get("last_seq"))),
            ("Owners", " ".join(map(at, room.get("owners") or []))),
            ("You are", room.get("role") or "not in it"),
            ("Created", made_at(room.get("created_at"))),
            ("Backends", " ".join(map(word, room.get("backends") or []))),
            ("Members may", allowed(room.get("capabilities"))),
            *((at(who), allowed(patterns)) for who, patterns in held.items()),
            *((heading, tell(policy.get(name))) for name, (heading, tell) in POLICY.items()),
        ]
    )


def change(
    name: given.RoomArgument,
    access: given.AccessOption = None,
    capability: given.CapabilityOption = None,
    grant: given.GrantOption = None,
    ungrant: given.UngrantOption = None,
    backend: given.OnlyBackendOption = None,
    owner: given.OwnerOption = None,
    quorum: given.QuorumOption = None,
    proposal_seconds: given.ProposalSecondsOption = None,
    request_seconds: given.RequestSecondsOption = None,
    progress_seconds: given.ProgressSecondsOption = None,
    loop_guard: given.LoopGuardOption = None,
    keep_messages: given.KeepMessagesOption = None,
    keep_days: given.KeepDaysOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    no_backends: given.NoBackendsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change a room's settings. For owners.

    Settings that are not given stay as they are. Rights given here with --grant hold even while the
    person is not in the room. To hand a room over, name its new owners with --owner and leave
    yourself out.
    """
    if backend and no_backends:
        raise typer.BadParameter("give either --backend or --no-backends")
    patch = given.without_none(
        access=access,
        capabilities=[given.capability(text) for text in capability or ()],
        backends=backend,
        owners=owner,
        policy=given.without_none(
            quorum=quorum, proposal_seconds=proposal_seconds, request_seconds=request_seconds,
            progress_seconds=progress_seconds, loop_guard=loop_guard,
            keep_messages=keep_messages, keep_days=keep_days,
        ),
    )  # fmt: skip
    if no_backends:
        patch["backends"] = []
    changed_grants = given.changed_grants(grant, ungrant)
    if not (patch or changed_grants):
        raise typer.BadParameter("give at least one setting to change")
    client = rooms_of(name, url, handle)
    if changed_grants is not None:
        patch["grants"] = changed_grants(client.get(name).get("grants"))
    room = client.change(name, patch)
    if as_json:
        say_data(room)
    else:
        say(f"Changed the room {word(room.get('name'))}.")


def delete(
    name: given.RoomArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: given.YesOption = False,
) -> None:
    """Permanently delete a room and its history. For owners.

    Asks for the room's name first, unless --yes is given.
    """
    client = rooms_of(name, url, handle)
    if not yes:
        confirm(name)
    client.delete(name)
    say(f"Deleted the room {name}.")


def confirm(name: str) -> None:
    """Let only someone go on who types the name."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("--yes is needed when there is no terminal to ask on")
    complain(f"this permanently deletes the room {name} and its history.", kind="warning")
    typed = str(typer.prompt("Type its name to confirm", default="", show_default=False, err=True))
    if typed.strip() != name:
        say("Nothing was deleted.", err=True)
        raise typer.Exit(ExitCode.FAILED)


def invite(
    name: given.RoomArgument,
    who: given.InvitedArgument = None,
    guest: given.GuestOption = None,
    grant: given.GuestGrantOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Invite someone to a room, by handle or as a guest.

    For a guest, prints a token that works once and is not shown again: hand it over in private.
    """
    if (who is None) is (guest is None):
        raise typer.BadParameter("give either a HANDLE or --guest")
    if grant and who is not None:
        raise typer.BadParameter("--grant is for a --guest; use 'room change --grant' for a handle")
    asked: dict[str, Any] = {"handle": who} if who is not None else {"guest": str(guest)}
    if grant:
        asked["capabilities"] = [given.capability(text) for text in grant]
    inviter = entrance(name, url, handle)
    answer = RoomsClient(inviter).invite(name, **asked)
    if as_json:
        say_data(answer)
    elif who is not None:
        say(f"Invited {at(answer.get('handle') or who)} to {name}.")
    else:
        say(word(answer.get("token")))
        until = f", until {word(answer.get('expires_at'))}" if answer.get("expires_at") else ""
        say(f"With this token, {word(answer.get('guest'))} can enter {name} once{until}:", err=True)
        say(f"  folkmoot room join {name} --invitation --url {inviter.hub}", err=True)
