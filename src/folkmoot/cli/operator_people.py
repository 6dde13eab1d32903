"""`folkmoot people` and `folkmoot room list --all`: all accounts and rooms, for the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import folkmoot.operations as ops
from folkmoot.cli.account import AgentOption, show_saved_place, show_secrets
from folkmoot.cli.commands import Output, Table, every, group, operator_command
from folkmoot.cli.credentials import (
    HandleArgument,
    Login,
    YesOption,
    changing,
    confirm_name,
    handle_argument,
    read_keyring,
)
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import (
    JsonOption,
    flag,
    option,
)
from folkmoot.cli.output import (
    aligned,
    moment,
    size,
)
from folkmoot.cli.serve import reachable
from folkmoot.cli.show import (
    Column,
    at,
    word,
)
from folkmoot.cli.views import View
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.accounts.model import PersonRow
    from folkmoot.operations.operator.hub import RoomOfHub, Use
    from folkmoot.operations.operator.people import SuspendedPerson

SuspendedOption = Annotated[bool, flag("--suspended", "Only suspended accounts.")]
NewArgument = Annotated[str, handle_argument("The handle of the new account.")]
NoKeepOption = Annotated[bool, flag("--no-keep", "Only show the token; do not save it here.")]
NoOption = Annotated[bool, flag("--no", "They are no longer an operator.")]
ReasonOption = Annotated[str, option("--reason", "TEXT", "Why, for the audit log.")]


@operator_command
def list_people(hub: OperatedHub, *, suspended: SuspendedOption = False) -> Output:
    """List everyone who has an account, and what they store."""
    found = list(every(hub.list_accounts, "people", by="after", suspended=suspended))
    rows = [
        (at(it.handle), it.account_type, moment(it.created_at), str(it.rooms),
         size(it.mail_bytes), size(it.room_bytes), state(it))
        for it in found
    ]  # fmt: skip
    columns = (Column("Handle", "bold"), Column("Account"), Column("Since", "dim"),
               Column("Rooms", named=True), Column("Mail", named=True),
               Column("In rooms", named=True), Column("State", wide=True))  # fmt: skip
    nothing = "No one is suspended." if suspended else "No accounts yet."
    return Output({"people": found}, Table(columns, rows, nothing))


@operator_command
def show(hub: OperatedHub, handle: HandleArgument) -> Output:
    """Show one account: its state, and how much of its quotas it uses."""
    found = hub.get_account_of(handle)
    rows = [
        ("Handle", at(found.handle)),
        ("Name", word(found.display_name)),
        ("Account", found.account_type),
        ("Since", moment(found.created_at)),
        ("Rooms", str(found.rooms)),
        *((QUOTAS[name], used(name, use)) for name, use in found.quotas.items()),
        *([("State", state(found))] if state(found) else []),
    ]
    return Output(found, *aligned(rows))


QUOTAS = {"mail": "Mail", "rooms": "In rooms", "tokens": "Tokens"}


def used(name: str, use: Use) -> str:
    """How much of a quota is used."""
    shown = str if name == "tokens" else size
    return f"{shown(use.used)} of {shown(use.limit)}" if use.limit else shown(use.used)


def state(row: PersonRow) -> str:
    """Whether an account is an operator's, or suspended."""
    since = row.suspended_at
    told = ["operator"] if row.operator_since is not None else []
    return ", ".join([*told, *([f"suspended {moment(since)}"] if since is not None else [])])


@operator_command
def add(
    hub: OperatedHub,
    handle: NewArgument,
    *,
    agent: AgentOption = False,
    no_keep: NoKeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create an account, without an invitation or limits.

    Use this for the first account of a hub. The token and the recovery code are shown and saved
    here, as with 'folkmoot register'. To let someone else register, use 'folkmoot invite'.
    """
    login: Login | None = None
    try:
        if no_keep:
            login = made(hub, handle, agent=agent)
        else:
            with changing() as keyring:
                login = made(hub, handle, agent=agent)
                keyring.put(login)
    except e.CredentialsUnusable:
        # The account is made, and no file keeps its token: whoever reads this must keep it now.
        if login is not None:
            show_secrets(login, as_json=as_json, kept=False)
        raise
    show_secrets(login, as_json=as_json, kept=not no_keep)
    if not as_json and not no_keep:
        show_saved_place(read_keyring(), login)


def made(hub: OperatedHub, handle: str, *, agent: bool) -> Login:
    """Create an account, and return its login at the address this machine uses."""
    new = hub.add_account(handle, account_type="agent" if agent else "person")
    return Login(reachable(new.hub), new.handle, new.token, new.recovery_code)


def suspended(answer: SuspendedPerson) -> Output:
    who = at(answer.handle)
    if answer.changed:
        undo = f"'folkmoot people restore {word(answer.handle)}' undoes it."
        return Output(answer, f"{who} is suspended. {undo}")
    return Output(answer, f"{who} has been suspended since {moment(answer.suspended_at)}.")


suspend = View(
    lambda: ops.operator.people.suspend_person,
    """Lock an account until it is restored.

    Its token stops working and its connections are closed immediately. Nothing is deleted, and mail
    to it still arrives.
    """,
    suspended,
    handle=HandleArgument,
    reason=ReasonOption,
)


def restored(answer: SuspendedPerson) -> Output:
    who = at(answer.handle)
    return Output(answer, f"{who} is restored." if answer.changed else f"{who} is not suspended.")


restore = View(
    lambda: ops.operator.people.restore_person,
    "Unlock a suspended account; its token works again.",
    restored,
    handle=HandleArgument,
    reason=ReasonOption,
)


@operator_command
def operator(
    hub: OperatedHub, handle: HandleArgument, reason: ReasonOption = "", *, no: NoOption = False
) -> Output:
    """Let someone run the hub in their browser, or no longer.

    They sign in again to do so. With --no, browsers that could run the hub are signed out
    immediately, and tokens with that scope end.
    """
    answer = hub.set_operator(handle, reason=reason, operator=not no)
    is_now = "is no longer an operator" if no else "is an operator from the next time they sign in"
    was = "is not an operator" if no else "is already an operator"
    return Output(answer, f"{at(answer.handle)} {is_now if answer.changed else was}.")


@operator_command
def remove(
    hub: OperatedHub, handle: HandleArgument, reason: ReasonOption = "", *, yes: YesOption = False
) -> Output:
    """Permanently delete an account and all its mail.

    Messages in rooms stay, and older backups of the hub still contain the mail. Asks for the handle
    first, unless --yes is given.
    """
    if not yes:
        confirm_name(
            handle,
            f"this permanently deletes {at(handle)} and all their mail.",
            "Type the handle to go on",
            "Nothing was removed.",
        )
    answer = hub.remove_account(handle, reason=reason)
    return Output(answer, f"Removed {at(answer.handle)}. Older backups still contain their data.")


app = group(
    {"list": list_people, "show": show, "add": add, "operator": operator, "suspend": suspend,
     "restore": restore, "remove": remove},
    """List, add, suspend and remove people, and make them operators.

    For the operator, on the hub's own machine, with or without a running hub.
    """,
    list_people,
)  # fmt: skip


def rooms(hub: OperatedHub) -> Output:
    """Every room of the hub, including private ones."""
    found = list(every(hub.list_all_rooms, "rooms", by="after"))
    rows = [
        (word(it.name), at(it.owner) if it.owner else "-", access(it), str(it.members),
         str(it.present), f"{it.messages:,}", size(it.bytes), last(it))
        for it in found
    ]  # fmt: skip
    columns = (Column("Room", "bold"), Column("Owner"), Column("Access"),
               Column("Members", named=True), Column("Here", named=True),
               Column("Messages", named=True), Column("Size"),
               Column("Last", "dim"))  # fmt: skip
    return Output({"rooms": found}, Table(columns, rows, "There are no rooms yet."))


def access(room: RoomOfHub) -> str:
    """Who can come in, and whether it is kept."""
    return room.access if room.durable else f"{room.access}, in memory"


def last(room: RoomOfHub) -> str:
    """When the last message came."""
    return "-" if room.last_at is None else moment(room.last_at)
