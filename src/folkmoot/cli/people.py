"""People: who is here, your contacts, whom you block, whom you invite."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec import Struct

from folkmoot.cli.credentials import (
    AsOption,
    HandleArgument,
    UrlOption,
    checked_handle,
    signed_in,
    text_of,
)
from folkmoot.cli.grants import invite_for
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    JsonOption,
    check_place,
    number,
)
from folkmoot.cli.output import moment, say, say_data
from folkmoot.cli.show import (
    Column,
    at,
    tell_fields,
    tell_table,
    word,
)

NicknameOption = Annotated[
    str | None,
    typer.Option("--nickname", metavar="NAME", help="Your name for them.", show_default=False),
]
QueryArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="A part of a handle or name.", show_default=False)
]
GreetingOption = Annotated[
    str | None,
    typer.Option(
        "--message", metavar="TEXT", show_default=False,
        help="A message they get when they register; - reads it from the standard input.",
    ),
]  # fmt: skip

INVITE_DAYS = 7
ForOption = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="HANDLE", callback=checked_handle, show_default=False,
        help="As the operator: an invite for this handle, which nobody has yet.",
    ),
]  # fmt: skip
DaysOption = Annotated[
    int | None,
    number("--days", 1, 365, f"With --for: how long it is valid.  [default: {INVITE_DAYS}]"),
]

contacts = typer.Typer(help="Show and change your contacts.", rich_markup_mode=None)


@contacts.callback(invoke_without_command=True)
def contacts_root(
    ctx: typer.Context,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show and change your contacts."""
    if ctx.invoked_subcommand is None:
        list_contacts(url, handle, as_json=as_json)
    else:
        check_place(ctx, url, handle, as_json)


@contacts.command("list")
def list_contacts(
    url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False
) -> None:
    """List your contacts."""
    hub, _ = signed_in(url, handle)
    page = hub.list_contacts()
    found = page.contacts
    while page.next_cursor:
        page = hub.list_contacts(cursor=page.next_cursor)
        found += page.contacts
    if as_json:
        say_data({"contacts": found})
        return
    rows = [
        (at(it.handle), word(it.display_name), word(it.nickname), moment(it.added_at))
        for it in found
    ]
    columns = (Column("Handle", "bold"), Column("Name", wide=True), Column("Nickname", wide=True),
               Column("Since", "dim"))  # fmt: skip
    tell_table(columns, rows, "No contacts.")


@contacts.command("add")
def add_contact(
    who: HandleArgument,
    nickname: NicknameOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Add someone to your contacts."""
    hub, _ = signed_in(url, handle)
    added = hub.add_contact(who, nickname=nickname)
    tell(added, f"Added {at(added.contact)} to your contacts.", as_json=as_json)


@contacts.command("remove")
def remove_contact(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Remove someone from your contacts."""
    hub, _ = signed_in(url, handle)
    removed = hub.remove_contact(who)
    tell(removed, f"Removed {at(removed.contact)} from your contacts.", as_json=as_json)


def block(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Block someone from writing to you."""
    hub, _ = signed_in(url, handle)
    blocked = hub.block(who)
    tell(blocked, f"{at(blocked.handle)} can no longer write to you.", as_json=as_json)


def unblock(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Unblock someone."""
    hub, _ = signed_in(url, handle)
    unblocked = hub.unblock(who)
    tell(unblocked, f"{at(unblocked.handle)} can write to you again.", as_json=as_json)


def blocks(url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False) -> None:
    """List the people you block."""
    hub, _ = signed_in(url, handle)
    page = hub.list_blocks()
    found = page.blocked
    while page.next_cursor:
        page = hub.list_blocks(cursor=page.next_cursor)
        found += page.blocked
    if as_json:
        say_data({"blocked": found})
        return
    tell_table((Column("Handle", "bold"),), [(at(each),) for each in found], "You block nobody.")


def lookup(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show someone's profile."""
    hub, _ = signed_in(url, handle)
    found = hub.look_up(who)
    if as_json:
        say_data(found)
        return
    tell_fields(
        [
            ("Handle", f"@{found.handle}"),
            ("Name", found.display_name),
            ("Bio", found.bio),
            ("Status", found.status),
            ("Account", found.account_type),
            ("Key", found.public_key),
        ]
    )


def search(
    query: QueryArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Search for people by handle or name."""
    hub, _ = signed_in(url, handle)
    found = hub.search_people(query)
    if as_json:
        say_data(found)
        return
    rows = [(at(it.handle), word(it.display_name), word(it.bio)) for it in found.results]
    columns = (Column("Handle", "bold"), Column("Name", wide=True), Column("Bio", wide=True))
    tell_table(columns, rows, "Nobody found.")


def invite(
    message: GreetingOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    for_handle: ForOption = None,
    days: DaysOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Create an invite link with which one person can register.

    The operator can create one for a handle, with --for on the hub's own machine. It works for that
    handle only, even if registration is closed. A handle that has rights in the settings can only
    be registered with such an invite.
    """
    if for_handle is not None:
        if message or url or handle:
            raise typer.BadParameter(
                "--for can only be combined with --days, --data, --config and --json"
            )
        invite_for(for_handle, days or INVITE_DAYS, data, config, as_json=as_json)
        return
    if days or data or config:
        raise typer.BadParameter("--days, --data and --config need --for")
    text = None if message is None else text_of(message)
    hub, _ = signed_in(url, handle)
    made = hub.create_invite(message=text)
    tell(made, word(made.invite_url), as_json=as_json)


def tell(answer: Struct, sentence: str, *, as_json: bool) -> None:
    """The answer for a program, or a sentence for a person."""
    if as_json:
        say_data(answer)
    else:
        say(sentence)
