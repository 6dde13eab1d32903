"""Rooms themselves: list, make, show, change and delete them, and ask people in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from folkmoot.cli.credentials import AsOption, UrlOption
from folkmoot.cli.options import JsonOption
from folkmoot.cli.output import ExitCode, complain, duration, moment, say, say_data
from folkmoot.cli.room import options as given
from folkmoot.cli.room.options import entrance, hub_of, present
from folkmoot.cli.room.sentences import allowed
from folkmoot.cli.show import (
    Column,
    at,
    tell_fields,
    tell_table,
    word,
)

if TYPE_CHECKING:
    from folkmoot.client.methods import Room

COLUMNS = (
    Column("Room", "bold"), Column("Access"), Column("You are"), Column("Here", named=True),
    Column("Messages", named=True), Column("Owners", wide=True),
)  # fmt: skip


def list_rooms(
    url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False
) -> None:
    """List the rooms you can see."""
    hub = hub_of(None, url, handle)
    page = hub.list_rooms()
    found = page.rooms
    while page.next_cursor:
        page = hub.list_rooms(cursor=page.next_cursor)
        found += page.rooms
    if as_json:
        say_data({"rooms": found})
    else:
        tell_table(COLUMNS, map(row, found), "No rooms. 'folkmoot room create NAME' makes one.")


def row(room: Room) -> tuple[str, ...]:
    """One room in a line."""
    return (
        word(room.name),
        word(room.access),
        word(room.role),
        word(room.participants),
        word(room.last_seq),
        " ".join(map(at, room.owners)),
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
    made = hub_of(None, url, handle).create_room(**spec)
    if as_json:
        say_data(made)
        return
    say(f"Created the room {word(made.name)}, {OPENNESS.get(made.access, '')}.")
    say(f"To enter it: folkmoot room join {word(made.name)}")


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
    hub = hub_of(name, url, handle)
    room = hub.get_room(name)
    here = present(hub, name)
    if as_json:
        say_data({**msgspec.to_builtins(room), "present": here})
        return
    tell_room(room)
    if here:
        say()
        rows = [(word(it.id), word(it.type), word(it.role)) for it in here]
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


def span(first: int, last: int) -> str:
    """Which messages there are, by their numbers."""
    return "none" if last < first else f"{first} to {last}"


def made_at(ts: Any) -> str:
    """When a room was made, as the reader's clock shows it."""
    try:
        return moment(datetime.fromisoformat(str(ts)).timestamp())
    except (ValueError, OverflowError):
        return word(ts)


def tell_room(room: Room) -> None:
    """How a room is set."""
    tell_fields(
        [
            ("Room", room.name),
            ("Access", room.access),
            ("History", "kept" if room.durable else "in memory only"),
            ("Messages", span(room.first_seq, room.last_seq)),
            ("Owners", " ".join(map(at, room.owners))),
            ("You are", room.role or "not in it"),
            ("Created", made_at(room.created_at)),
            ("Backends", " ".join(map(word, room.backends or []))),
            ("Members may", allowed(room.capabilities)),
            *((at(who), allowed(patterns)) for who, patterns in (room.grants or {}).items()),
            *((head, tell(getattr(room.policy, name))) for name, (head, tell) in POLICY.items()),
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
    hub = hub_of(name, url, handle)
    if changed_grants is not None:
        patch["grants"] = changed_grants(hub.get_room(name).grants)
    room = hub.change_room(name, **patch)
    if as_json:
        say_data(room)
    else:
        say(f"Changed the room {word(room.name)}.")


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
    hub = hub_of(name, url, handle)
    if not yes:
        confirm(name)
    hub.delete_room(name)
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
    answer = inviter.client.invite(name, **asked)
    if as_json:
        say_data(answer)
    elif who is not None:
        say(f"Invited {at(answer.handle or who)} to {name}.")
    else:
        say(word(answer.token))
        until = f", until {word(answer.expires_at)}" if answer.expires_at else ""
        say(f"With this token, {word(answer.guest)} can enter {name} once{until}:", err=True)
        say(f"  folkmoot room join {name} --invitation --url {inviter.hub}", err=True)


def invites(
    name: given.RoomArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List whom a room waits for.

    Owners see everyone who was invited and has not come; others see the guests they invited.
    """
    found = hub_of(name, url, handle).list_invitations(name).invitations
    if as_json:
        say_data({"invitations": found})
        return
    rows = [
        (
            at(it.handle) if it.handle else word(it.guest),
            "account" if it.handle else "guest",
            at(it.invited_by) if it.invited_by else "-",
            word(it.expires_at) if it.expires_at else "-",
        )
        for it in found
    ]
    columns = (Column("Invited", "bold"), Column("As"), Column("By"), Column("Until", named=True))
    tell_table(columns, rows, "Nobody is waited for.")


def uninvite(
    name: given.RoomArgument,
    who: given.WaitedForArgument,
    url: UrlOption = None,
    handle: AsOption = None,
) -> None:
    """Withdraw an invitation to a room that nobody has used yet."""
    hub_of(name, url, handle).withdraw_invitation(name, who.removeprefix("@"))
    say(f"Withdrew the invitation of {word(who)} to {name}.")
