"""Rooms themselves: list, make, show, change and delete them, and ask people in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import msgspec
import typer

from folkmoot.cli.commands import (
    Fields,
    Note,
    Output,
    Place,
    Table,
    every,
    opened_hub,
    with_json_option,
)
from folkmoot.cli.credentials import AsOption, UrlOption, YesOption, confirm_name
from folkmoot.cli.options import ConfigOption, DataOption, flag
from folkmoot.cli.output import duration, moment
from folkmoot.cli.room import options as opts
from folkmoot.cli.room.options import present, room_command, with_policy
from folkmoot.cli.room.sentences import allowed, new_in
from folkmoot.cli.show import (
    Column,
    at,
    word,
)

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.rooms.model import RoomView

COLUMNS = (
    Column("Room", "bold"), Column("Access"), Column("You are"), Column("Here", named=True),
    Column("New", named=True), Column("Owners", wide=True),
)  # fmt: skip


AllOption = Annotated[
    bool, flag("--all", "As the operator, on the hub's own machine: every room, private ones too.")
]


@with_json_option
def list_rooms(
    url: UrlOption = None,
    handle: AsOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everyones: AllOption = False,
) -> Output:
    """List the rooms you can see."""
    Place(url, handle, data, config).check("--all", everyones)
    if everyones:
        from folkmoot.cli.operator_people import rooms

        return rooms(opened_hub(config, data))
    found = list(every(opts.entrance(None, url, handle).client.list_rooms, "rooms"))
    nothing = "No rooms yet. 'folkmoot room create NAME' makes one."
    return Output({"rooms": found}, Table(COLUMNS, map(row, found), nothing))


def row(room: RoomView) -> tuple[str, ...]:
    return (
        word(room.name),
        word(room.access),
        word(room.role),
        word(room.participants),
        new_in(room),
        " ".join(map(at, room.owners)),
    )


@room_command
@with_policy
def create(
    hub: HubClient,
    name: opts.NewRoomArgument,
    policy: dict[str, Any],
    access: opts.AccessOption = None,
    capability: opts.CapabilityOption = None,
    grant: opts.GrantOption = None,
    backend: opts.BackendOption = None,
    *,
    memory: opts.MemoryOption = False,
) -> Output:
    """Create a room that you own."""
    spec = opts.without_none(
        name=name,
        access=access,
        durable=False if memory else None,
        capabilities=[opts.capability(text) for text in capability or ()],
        grants=opts.grants(grant),
        backends=backend,
        policy=policy,
    )
    made = hub.create_room(**spec)
    return Output(
        made,
        f"Created the room {word(made.name)}, {OPENNESS.get(made.access, '')}.",
        f"To enter it: folkmoot room join {word(made.name)}",
    )


OPENNESS: dict[Any, str] = {
    "open": "open to everyone with an account",
    "invite": "for invited people only",
    "private": "for invited people only, and hidden from everyone else",
}


@room_command
def show(hub: HubClient, name: opts.RoomArgument) -> Output:
    """Show a room, and who is in it now."""
    room = hub.get_room(name)
    here = present(hub, name)
    columns = (Column("Here now", "bold"), Column("Type"), Column("Role"))
    rows = [(word(it.id), word(it.type), word(it.role)) for it in here]
    table = ("", Table(columns, rows, "")) if here else ()
    return Output({**msgspec.to_builtins(room), "present": here}, described(room), *table)


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


def span(first: int, last: int) -> str:
    """The range of message numbers in words."""
    return "none" if last < first else f"{first} to {last}"


def described(room: RoomView) -> Fields:
    """How a room is set."""
    return Fields(
        ("Room", room.name),
        ("Access", room.access),
        ("History", "kept" if room.durable else "in memory only"),
        ("Messages", span(room.first_seq, room.last_seq)),
        ("Owners", " ".join(map(at, room.owners))),
        ("You are", room.role or "not in it"),
        ("Created", moment(room.created_at)),
        ("Backends", " ".join(map(word, room.backends or []))),
        ("Members can", allowed(room.capabilities)),
        *((at(who), allowed(patterns)) for who, patterns in (room.grants or {}).items()),
        *((head, spelled(getattr(room.policy, name))) for name, (head, spelled) in POLICY.items()),
    )


@room_command
@with_policy
def change(
    hub: HubClient,
    name: opts.RoomArgument,
    policy: dict[str, Any],
    access: opts.AccessOption = None,
    capability: opts.CapabilityOption = None,
    grant: opts.GrantOption = None,
    ungrant: opts.UngrantOption = None,
    backend: opts.OnlyBackendOption = None,
    owner: opts.OwnerOption = None,
    *,
    no_backends: opts.NoBackendsOption = False,
) -> Output:
    """Change a room's settings. For owners.

    Settings that are not given stay as they are. Rights given here with --grant hold even while the
    person is not in the room. To hand a room over, name its new owners with --owner and leave
    yourself out.
    """
    if backend and no_backends:
        raise typer.BadParameter("give either --backend or --no-backends")
    patch = opts.without_none(
        access=access,
        capabilities=[opts.capability(text) for text in capability or ()],
        backends=backend,
        owners=owner,
        policy=policy,
    )
    if no_backends:
        patch["backends"] = []
    changed_grants = opts.changed_grants(grant, ungrant)
    if not (patch or changed_grants):
        raise typer.BadParameter("give at least one setting to change")
    if changed_grants is not None:
        patch["grants"] = changed_grants(hub.get_room(name).grants)
    room = hub.change_room(name, **patch)
    return Output(room, f"Changed the room {word(room.name)}.")


@room_command
def delete(hub: HubClient, name: opts.RoomArgument, *, yes: YesOption = False) -> Output:
    """Permanently delete a room and its history. For owners.

    Asks for the room's name first, unless --yes is given.
    """
    if not yes:
        confirm_name(
            name,
            f"this permanently deletes the room {name} and its history.",
            "Type its name to confirm",
            "Nothing was deleted.",
        )
    hub.delete_room(name)
    return Output({"room": name}, f"Deleted the room {name}.")


@room_command
def invite(
    entrance: opts.Entrance,
    name: opts.RoomArgument,
    who: opts.InvitedArgument = None,
    guest: opts.GuestOption = None,
    grant: opts.GuestGrantOption = None,
) -> Output:
    """Invite someone to a room, by handle or as a guest.

    For a guest, prints a token, and a link with it, that works once and is not shown again: hand it
    over in private.
    """
    if (who is None) is (guest is None):
        raise typer.BadParameter("give either a HANDLE or --guest")
    if grant and who is not None:
        raise typer.BadParameter("--grant is for a --guest; use 'room change --grant' for a handle")
    asked: dict[str, Any] = {"handle": who} if who is not None else {"guest": str(guest)}
    if grant:
        asked["capabilities"] = [opts.capability(text) for text in grant]
    answer = entrance.client.invite(name, **asked)
    if who is not None:
        return Output(answer, f"Invited {at(answer.handle or who)} to {name}.")
    until = f", until {word(answer.expires_at)}" if answer.expires_at else ""
    return Output(
        answer,
        word(answer.token),
        Note(f"With this token, {word(answer.guest)} can enter {name} once{until}:"),
        Note(f"  folkmoot room join {name} --invitation --url {entrance.hub}"),
        Note("Or in a browser, with this link:"),
        Note(f"  {entrance.hub}/rooms/{quote(name, safe='')}#invite={word(answer.token)}"),
    )


@room_command
def invites(hub: HubClient, name: opts.RoomArgument) -> Output:
    """List open invitations.

    Owners see everyone who was invited and has not come; others see the guests they invited.
    """
    found = hub.list_invitations(name).invitations
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
    return Output({"invitations": found}, Table(columns, rows, "No open invitations."))


@room_command
def uninvite(hub: HubClient, name: opts.RoomArgument, who: opts.WaitedForArgument) -> Output:
    """Withdraw an invitation to a room that nobody has used yet."""
    whom = who.removeprefix("@")
    hub.withdraw_invitation(name, whom)
    done = f"Withdrew the invitation of {word(who)} to {name}."
    return Output({"room": name, "invited": whom}, done)
