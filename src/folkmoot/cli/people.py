"""People: who is here, your contacts, whom you block, whom you invite."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from folkmoot.cli.asking import (
    AsOption,
    HandleArgument,
    UrlOption,
    ask,
    checked_handle,
    text_of,
)
from folkmoot.cli.grants import invite_for
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, check_place, number
from folkmoot.cli.output import say
from folkmoot.cli.show import Column, at, tell_fields, tell_table, word
from folkmoot.cli.text import moment, say_data

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
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        answer = ask(url, handle, "msg/contacts", {"cursor": cursor})
        found += answer.get("contacts") or []
        cursor = answer.get("next_cursor")
        if not cursor:
            break
    if as_json:
        say_data({"contacts": found})
        return
    rows = [
        (at(it.get("handle")), word(it.get("display_name")), word(it.get("nickname")),
         moment(it.get("added_at")))
        for it in found
    ]  # fmt: skip
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
    answer = ask(url, handle, "msg/add_contact", {"handle": who, "nickname": nickname})
    tell(answer, f"Added {at(answer.get('contact', who))} to your contacts.", as_json=as_json)


@contacts.command("remove")
def remove_contact(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Remove someone from your contacts."""
    answer = ask(url, handle, "msg/remove_contact", {"handle": who})
    sentence = f"Removed {at(answer.get('contact', who))} from your contacts."
    tell(answer, sentence, as_json=as_json)


def block(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Block someone from writing to you."""
    answer = ask(url, handle, "msg/block", {"handle": who, "action": "block"})
    sentence = f"{at(answer.get('handle', who))} can no longer write to you."
    tell(answer, sentence, as_json=as_json)


def unblock(
    who: HandleArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Unblock someone."""
    answer = ask(url, handle, "msg/block", {"handle": who, "action": "unblock"})
    sentence = f"{at(answer.get('handle', who))} can write to you again."
    tell(answer, sentence, as_json=as_json)


def blocks(url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False) -> None:
    """List the people you block."""
    found: list[str] = []
    cursor = None
    while True:
        answer = ask(url, handle, "msg/blocks", {"cursor": cursor})
        found += answer.get("blocked") or []
        cursor = answer.get("next_cursor")
        if not cursor:
            break
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
    answer = ask(url, handle, "msg/lookup", {"handle": who})
    if as_json:
        say_data(answer)
        return
    tell_fields(
        [
            ("Handle", f"@{answer.get('handle', who)}"),
            ("Name", answer.get("display_name")),
            ("Bio", answer.get("bio")),
            ("Status", answer.get("status")),
            ("Account", answer.get("account_type")),
            ("Key", answer.get("public_key")),
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
    answer = ask(url, handle, "msg/search_users", {"query": query})
    if as_json:
        say_data(answer)
        return
    found = answer.get("results") or []
    rows = [
        (at(it.get("handle")), word(it.get("display_name")), word(it.get("bio"))) for it in found
    ]
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
    answer = ask(url, handle, "msg/invite", {"message": text})
    tell(answer, word(answer.get("invite_url")), as_json=as_json)


def tell(answer: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    """The answer for a program, or a sentence for a person."""
    if as_json:
        say_data(answer)
    else:
        say(sentence)
