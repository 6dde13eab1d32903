"""Invitations to the hub that nobody has used yet: list them, withdraw one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from folkmoot.cli.credentials import AsOption, UrlOption, signed_in
from folkmoot.cli.operator import OperatedHub, understood
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    JsonOption,
    check_place,
    flag,
)
from folkmoot.cli.output import moment, one_line, say, say_data
from folkmoot.cli.show import (
    Column,
    at,
    tell_table,
    word,
)
from folkmoot.core.errors import InviteNotOpen

if TYPE_CHECKING:
    from folkmoot.client.methods import OpenInvite

SHORT: Final = 10
"""Characters of an id that are shown; every command takes such a beginning."""

AllOption = Annotated[
    bool, flag("--all", "As the operator, on the hub's own machine: those of everyone.")
]
IdArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id of the invitation, or how it begins."),
]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    url: UrlOption = None,
    handle: AsOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everyones: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """List and withdraw open invitations.

    Without a command, list those you made and nobody has used yet. Their links are not shown
    again.
    """
    if ctx.invoked_subcommand is not None:
        check_place(ctx, url, handle, data, config, everyones, as_json)
        return
    found = open_ones(url, handle, data, config, everyones=everyones)
    if as_json:
        say_data({"invites": found})
        return
    columns = (
        Column("ID", "bold"),
        Column("For", wide=True),
        Column("By"),
        Column("Created", named=True),
        Column("Until", named=True),
    )
    nothing = "No invitation is open. 'folkmoot invite' creates one."
    tell_table(columns, map(row, found), nothing)


def row(invite: OpenInvite) -> list[str]:
    """An invitation as a row of the table."""
    return [
        word(invite.id)[:SHORT],
        at(invite.handle) if invite.handle else "anyone",
        at(invite.invited_by) if invite.invited_by else "operator",
        moment(invite.created_at),
        "-" if invite.until is None else moment(invite.until),
    ]


def open_ones(
    url: str | None,
    handle: str | None,
    data: str | None,
    config: str | None,
    *,
    everyones: bool,
) -> list[OpenInvite]:
    """All open invitations of someone, or as the operator of everyone."""
    from folkmoot.client.methods import OpenInvites

    check_whose(url, handle, data, config, everyones=everyones)
    found: list[OpenInvite] = []
    cursor: str | None = None
    while True:
        if everyones:
            hub_here = OperatedHub(config, data)
            hub_here.require_database()
            answer = hub_here.ask("folkmoot/invites", {"cursor": cursor})
            page = understood(answer, OpenInvites)
        else:
            page = signed_in(url, handle)[0].list_my_invites(cursor=cursor)
        found += page.invites
        cursor = page.next_cursor
        if not cursor:
            return found


def check_whose(
    url: str | None,
    handle: str | None,
    data: str | None,
    config: str | None,
    *,
    everyones: bool,
) -> None:
    """Refuse options that do not fit together: those of an operator, and those of a client."""
    if everyones and (url or handle):
        raise typer.BadParameter("--all cannot be combined with --url or --as")
    if not everyones and (data or config):
        raise typer.BadParameter("--data and --config need --all")


@app.command("withdraw")
def withdraw(
    invite_id: IdArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    everyones: AllOption = False,
) -> None:
    """Withdraw an invitation: its link stops working at once."""
    fit = [
        it
        for it in open_ones(url, handle, data, config, everyones=everyones)
        if it.id.startswith(invite_id)
    ]
    if len(fit) != 1:
        if not fit:
            raise InviteNotOpen
        raise InviteNotOpen(f"{len(fit)} invitations begin with {one_line(invite_id)}.")
    if everyones:
        OperatedHub(config, data).ask("folkmoot/withdraw_invite", {"invite": fit[0].id})
    else:
        signed_in(url, handle)[0].withdraw_my_invite(fit[0].id)
    say(f"Withdrew the invitation {word(fit[0].id)[:SHORT]}.")
