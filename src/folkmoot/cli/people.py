"""People: who is here, your contacts, whom you block, whom you invite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

import folkmoot.operations as ops
from folkmoot.cli.commands import (
    Fields,
    Output,
    Place,
    Table,
    account_command,
    every,
    group,
    opened_hub,
    with_json_option,
)
from folkmoot.cli.credentials import (
    AsOption,
    HandleArgument,
    UrlOption,
    checked_handle,
    signed_in,
    text_of,
)
from folkmoot.cli.grants import invite_for, reach_of
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    argument,
    flag,
    number,
    option,
)
from folkmoot.cli.output import moment, one_line
from folkmoot.cli.show import Column, at, word
from folkmoot.cli.views import View
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.accounts.model import OpenInvite
    from folkmoot.cli.client import HubClient
    from folkmoot.client.hub import Hub
    from folkmoot.operations.people import FoundUsers

INVITE_DAYS: Final = 7
SHORT: Final = 10
"""Characters of an id that are shown; every command takes such a beginning."""

NicknameOption = Annotated[str | None, option("--nickname", "NAME", "Your name for them.")]
QueryArgument = Annotated[str, argument("TEXT", "A part of a handle or name.")]
GreetingOption = Annotated[
    str | None,
    option(
        "--message", "TEXT",
        "A message they get when they register; - reads it from the standard input.",
    ),
]  # fmt: skip
ForOption = Annotated[
    str | None,
    option(
        "--for", "HANDLE", "As the operator: an invite for this handle, which nobody has yet.",
        checked_handle,
    ),
]  # fmt: skip
DaysOption = Annotated[
    int | None,
    number("--days", 1, 365, f"With --for: how long it is valid.  [default: {INVITE_DAYS}]"),
]
AllOption = Annotated[
    bool, flag("--all", "As the operator, on the hub's own machine: those of everyone.")
]
InviteArgument = Annotated[str, argument("ID", "The invitation's id, or its first characters.")]


@account_command
def list_contacts(hub: HubClient) -> Output:
    """List your contacts."""
    found = list(every(hub.list_contacts, "contacts"))
    rows = [
        (at(it.handle), word(it.display_name), word(it.nickname), moment(it.added_at))
        for it in found
    ]
    columns = (Column("Handle", "bold"), Column("Name", wide=True), Column("Nickname", wide=True),
               Column("Since", "dim"))  # fmt: skip
    return Output({"contacts": found}, Table(columns, rows, "No contacts."))


@contextmanager
def existing(who: str) -> Iterator[None]:
    """Say of whom there is no account, and what to do."""
    try:
        yield
    except e.ToolRefused as error:
        if error.data.get("refused") != e.UserNotFound.code:
            raise
        told = f"There is no @{one_line(who)} here. Invite them: folkmoot invite"
        raise e.ToolRefused(told) from None


@account_command
def add_contact(hub: HubClient, who: HandleArgument, nickname: NicknameOption = None) -> Output:
    """Add someone to your contacts."""
    with existing(who):
        added = hub.add_contact(who, nickname=nickname or "")
    return Output(added, f"Added {at(added.contact)} to your contacts.")


@account_command
def remove_contact(hub: HubClient, who: HandleArgument) -> Output:
    """Remove someone from your contacts."""
    removed = hub.remove_contact(who)
    return Output(removed, f"Removed {at(removed.contact)} from your contacts.")


contacts_app = group(
    {"list": list_contacts, "add": add_contact, "remove": remove_contact},
    "Show and change your contacts.",
    list_contacts,
)


@account_command
def block(hub: HubClient, who: HandleArgument) -> Output:
    """Block someone from writing to you."""
    with existing(who):
        blocked = hub.block(who)
    return Output(blocked, f"{at(blocked.handle)} can no longer write to you.")


@account_command
def unblock(hub: HubClient, who: HandleArgument) -> Output:
    """Unblock someone."""
    unblocked = hub.block(who, action="unblock")
    return Output(unblocked, f"{at(unblocked.handle)} can write to you again.")


@account_command
def blocked(hub: HubClient) -> Output:
    """List the people you have blocked."""
    found = list(every(hub.list_blocks, "blocked"))
    rows = [(at(each),) for each in found]
    return Output(
        {"blocked": found}, Table((Column("Handle", "bold"),), rows, "You haven't blocked anyone.")
    )


@account_command
def lookup(hub: HubClient, who: HandleArgument) -> Output:
    """Show someone's profile."""
    with existing(who):
        found = hub.look_up(who)
    shown = Fields(
        ("Handle", f"@{found.handle}"),
        ("Name", found.display_name),
        ("Bio", found.bio),
        ("Status", found.status),
        ("Account", found.account_type),
        ("Key", found.public_key),
    )
    return Output(found, shown)


def people_found(found: FoundUsers) -> Output:
    rows = [(at(it.handle), word(it.display_name), word(it.bio)) for it in found.results]
    columns = (Column("Handle", "bold"), Column("Name", wide=True), Column("Bio", wide=True))
    return Output(found, Table(columns, rows, "No one found."))


find = View(
    lambda: ops.people.search_users,
    "Find people by handle or name.",
    people_found,
    query=QueryArgument,
)


@with_json_option
def invite(
    message: GreetingOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    for_handle: ForOption = None,
    days: DaysOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> Output:
    """Create an invite link with which one person can register."""
    if for_handle is not None:
        if message or url or handle:
            raise typer.BadParameter(
                "--for can only be combined with --days, --data, --config and --json"
            )
        return invite_for(for_handle, days or INVITE_DAYS, data, config)
    if days or data or config:
        raise typer.BadParameter("--days, --data and --config need --for")
    text = None if message is None else text_of(message)
    hub, _ = signed_in(url, handle)
    made = hub.create_invite(message=text)
    return Output(made, word(made.invite_url), *reach_of(made.invite_url))


@with_json_option
def list_invites(
    url: UrlOption = None,
    handle: AsOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everyones: AllOption = False,
) -> Output:
    """List the invitations that you made and nobody has used yet.

    Their links are not shown again.
    """
    found = open_invites(Place(url, handle, data, config), everyones=everyones)[1]
    columns = (
        Column("ID", "bold"), Column("For", wide=True), Column("By"),
        Column("Created", named=True), Column("Until", named=True),
    )  # fmt: skip
    nothing = "No open invitations. 'folkmoot invite' creates one."
    return Output({"invites": found}, Table(columns, map(invite_row, found), nothing))


def invite_row(invite: OpenInvite) -> list[str]:
    """An invitation as a row of the table."""
    return [
        word(invite.id)[:SHORT],
        at(invite.handle) if invite.handle else "anyone",
        at(invite.invited_by) if invite.invited_by else "operator",
        moment(invite.created_at),
        "-" if invite.until is None else moment(invite.until),
    ]


def open_invites(place: Place, *, everyones: bool) -> tuple[Hub, list[OpenInvite]]:
    """All open invitations of someone, or as the operator of everyone."""
    place.check("--all", everyones)
    hub: Hub = (
        opened_hub(place.config, place.data).of(None)
        if everyones
        else signed_in(place.url, place.handle)[0]
    )
    return hub, list(every(hub.list_my_invites, "invites"))


@with_json_option
def withdraw(
    invite_id: InviteArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everyones: AllOption = False,
) -> Output:
    """Withdraw an invitation: its link stops working at once."""
    hub, found = open_invites(Place(url, handle, data, config), everyones=everyones)
    fit = [it for it in found if it.id.startswith(invite_id)]
    if not fit:
        raise e.InviteNotOpen
    if len(fit) > 1:
        raise e.InviteNotOpen(f"{len(fit)} invitations begin with {one_line(invite_id)}.")
    hub.withdraw_my_invite(fit[0].id)
    return Output(fit[0], f"Withdrew the invitation {word(fit[0].id)[:SHORT]}.")


app = group(
    {"list": list_invites, "withdraw": withdraw},
    """Create an invite link with which one person can register.

    'folkmoot invite list' lists the open ones. The operator can create one for a handle, with --for
    on the hub's own machine. It works for that handle only, even if registration is closed. A
    handle that has rights in the settings can only be registered with such an invite.
    """,
    invite,
)
