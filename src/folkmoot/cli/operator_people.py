"""`folkmoot people` and `folkmoot rooms`: all accounts and rooms of a hub, for its operator."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
import typer

from folkmoot.cli.account import AgentOption, show_secrets, tell_kept
from folkmoot.cli.credentials import (
    HandleArgument,
    Login,
    YesOption,
    changing,
    handle_argument,
    read_keyring,
)
from folkmoot.cli.operator import OperatedHub, understood
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    JsonOption,
    check_place,
    flag,
    option,
)
from folkmoot.cli.output import (
    ExitCode,
    aligned,
    complain,
    moment,
    say,
    say_data,
    size,
)
from folkmoot.cli.serve import reachable
from folkmoot.cli.show import (
    Column,
    at,
    tell_table,
    word,
)
from folkmoot.core.errors import CredentialsUnusable

SuspendedOption = Annotated[bool, flag("--suspended", "Only suspended accounts.")]
NewArgument = Annotated[str, handle_argument("The handle of the new account.")]
NoKeepOption = Annotated[bool, flag("--no-keep", "Only show the token; do not save it here.")]
ReasonOption = Annotated[str, option("--reason", "TEXT", "Why, for the audit log.")]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def people(
    ctx: typer.Context,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    suspended: SuspendedOption = False,
    as_json: JsonOption = False,
) -> None:
    """List, show, add, suspend, restore and remove people.

    For the operator, on the hub's own machine, with or without a running hub.
    """
    if ctx.invoked_subcommand is None:
        list_people(data, config, suspended=suspended, as_json=as_json)
    else:
        check_place(ctx, data, config, suspended, as_json)


@app.command("list")
def list_people(
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    suspended: SuspendedOption = False,
    as_json: JsonOption = False,
) -> None:
    """List everyone who has an account, and what they store."""
    hub = opened(config, data)
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = hub.ask("folkmoot/people", {"after": after or None, "suspended": suspended})
        found += page["people"]
        after = page["next"]
    if as_json:
        say_data({"people": found})
        return
    rows = [
        (at(it["handle"]), it["account_type"], moment(it["created_at"]), str(it["rooms"]),
         size(it["mail_bytes"]), size(it["room_bytes"]), state(it))
        for it in found
    ]  # fmt: skip
    columns = (Column("Handle", "bold"), Column("Account"), Column("Since", "dim"),
               Column("Rooms", named=True), Column("Mail", named=True),
               Column("In rooms", named=True), Column("", "red", wide=True))  # fmt: skip
    nothing = "Nobody is suspended." if suspended else "Nobody has an account yet."
    tell_table(columns, rows, nothing)


@app.command()
def show(
    handle: HandleArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show one account: its state, and how much of its quotas it uses."""
    hub = opened(config, data)
    found = hub.ask("folkmoot/person", {"handle": handle})
    if as_json:
        say_data(found)
        return
    rows = [
        ("Handle", at(found["handle"])),
        ("Name", word(found["display_name"])),
        ("Account", found["account_type"]),
        ("Since", moment(found["created_at"])),
        ("Rooms", str(found["rooms"])),
        *((QUOTAS[name], used(name, use)) for name, use in found["quotas"].items()),
    ]
    if found["suspended_at"] is not None:
        rows.append(("State", state(found)))
    for line in aligned(rows):
        say(line)


QUOTAS = {"mail": "Mail", "rooms": "In rooms", "tokens": "Tokens"}


def used(name: str, use: dict[str, int]) -> str:
    """How much of a quota is used."""
    shown = str if name == "tokens" else size
    limit = f" of {shown(use['limit'])}" if use["limit"] else ""
    return f"{shown(use['used'])}{limit}"


def opened(config: str | None, data: str | None) -> OperatedHub:
    """A hub that has run before, and so can have accounts."""
    hub = OperatedHub(config, data)
    hub.require_database()
    return hub


def state(row: dict[str, Any]) -> str:
    """What is to be known about an account."""
    since = row["suspended_at"]
    return "" if since is None else f"suspended {moment(since)}"


@app.command()
def add(
    handle: NewArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    agent: AgentOption = False,
    no_keep: NoKeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create an account, without an invitation or limits.

    Use this for the first account of a hub. The token and the recovery code are shown and saved
    here, as with 'folkmoot register'. To let someone else register, use 'folkmoot invite'.
    """
    hub = opened(config, data)
    arguments = {"handle": handle, "account_type": "agent" if agent else "person"}
    login: Login | None = None
    try:
        if no_keep:
            login = made(hub, arguments)
        else:
            with changing() as keyring:
                login = made(hub, arguments)
                keyring.put(login)
    except CredentialsUnusable:
        # The account is made, and no file keeps its token: whoever reads this must keep it now.
        if login is not None:
            show_secrets(login, as_json=as_json, kept=False)
        raise
    show_secrets(login, as_json=as_json, kept=not no_keep)
    if not as_json and not no_keep:
        tell_kept(read_keyring(), login)


def made(hub: OperatedHub, arguments: dict[str, str]) -> Login:
    """A new account, on its hub as this machine reaches it."""
    login = understood(hub.ask("folkmoot/add_person", arguments), Login)
    return msgspec.structs.replace(login, hub=reachable(login.hub))


@app.command()
def suspend(
    handle: HandleArgument,
    reason: ReasonOption = "",
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Lock an account until it is restored.

    Its token stops working and its connections are closed immediately. Nothing is deleted, and mail
    to it still arrives.
    """
    hub = opened(config, data)
    answer = hub.ask("folkmoot/suspend", {"handle": handle, "reason": reason})
    who = at(answer["handle"])
    if as_json:
        say_data(answer)
    elif answer["changed"]:
        say(f"{who} is suspended. 'folkmoot people restore {word(answer['handle'])}' undoes it.")
    else:
        say(f"{who} has been suspended since {moment(answer['suspended_at'])}.")


@app.command()
def restore(
    handle: HandleArgument,
    reason: ReasonOption = "",
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Unlock a suspended account; its token works again."""
    hub = opened(config, data)
    answer = hub.ask("folkmoot/restore", {"handle": handle, "reason": reason})
    who = at(answer["handle"])
    if as_json:
        say_data(answer)
    else:
        say(f"{who} is restored." if answer["changed"] else f"{who} is not suspended.")


@app.command()
def remove(
    handle: HandleArgument,
    reason: ReasonOption = "",
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Permanently delete an account and all its mail.

    Messages in rooms stay, and older backups of the hub still contain the mail. Asks for the handle
    first, unless --yes is given.
    """
    hub = opened(config, data)
    if not yes:
        confirm(handle)
    answer = hub.ask("folkmoot/remove_person", {"handle": handle, "reason": reason or None})
    if as_json:
        say_data(answer)
    else:
        say(f"Removed {at(answer['handle'])}. Older backups still contain their data.")


def confirm(handle: str) -> None:
    """Let only someone go on who types the handle."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask for confirmation; use --yes")
    complain(f"this permanently deletes {at(handle)} and all their mail.", kind="warning")
    typed = str(typer.prompt("Type the handle to go on", default="", show_default=False, err=True))
    if typed.strip().removeprefix("@").lower() != handle:
        say("Nothing was removed.", err=True)
        raise typer.Exit(ExitCode.FAILED)


def rooms(
    data: DataOption = None, config: ConfigOption = None, *, as_json: JsonOption = False
) -> None:
    """List every room of the hub, including private ones.

    For the operator, on the hub's own machine, with or without a running hub. To use rooms, see
    'folkmoot room'.
    """
    hub = OperatedHub(config, data)
    hub.require_database()
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = hub.ask("folkmoot/rooms", {"after": after or None})
        found += page["rooms"]
        after = page["next"]
    if as_json:
        say_data({"rooms": found})
        return
    rows = [
        (word(it["name"]), at(it["owner"]) if it["owner"] else "-", access(it), str(it["members"]),
         str(it["present"]), f"{it['messages']:,}", size(it["bytes"]), last(it))
        for it in found
    ]  # fmt: skip
    columns = (Column("Room", "bold"), Column("Owner"), Column("Access"),
               Column("Members", named=True), Column("Here", named=True),
               Column("Messages", named=True), Column("Size"),
               Column("Last", "dim"))  # fmt: skip
    tell_table(columns, rows, "There are no rooms yet.")


def access(row: dict[str, Any]) -> str:
    """Who may come in, and whether it is kept."""
    return str(row["access"]) if row["durable"] else f"{row['access']}, in memory"


def last(row: dict[str, Any]) -> str:
    """When the last message came."""
    return "-" if row["last_at"] is None else moment(row["last_at"])
