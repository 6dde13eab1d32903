"""The table of room commands."""

from __future__ import annotations

from collections.abc import Callable

import typer

from folkmoot.cli.asking import AsOption, UrlOption
from folkmoot.cli.options import JsonOption, check_place
from folkmoot.cli.room import calls, decide, manage, present, talk

COMMANDS: dict[str, Callable[..., None]] = {
    "list": manage.list_rooms,
    "create": manage.create,
    "show": manage.show,
    "join": present.join,
    "say": talk.say_in,
    "tail": present.tail,
    "history": talk.history,
    "tools": calls.tools,
    "call": calls.call,
    "propose": calls.propose,
    "invite": manage.invite,
    "invites": manage.invites,
    "uninvite": manage.uninvite,
    "grant": decide.grant,
    "revoke": decide.revoke,
    "kick": decide.kick,
    "proposals": decide.proposals,
    "approve": decide.approve,
    "reject": decide.reject,
    "withdraw": decide.withdraw,
    "change": manage.change,
    "delete": manage.delete,
}
"""Every command of the group by its name."""

app = typer.Typer(help="Live rooms for people, agents and tools.", rich_markup_mode=None)
for name, what in COMMANDS.items():
    app.command(name)(what)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Live rooms for people, agents and tools. Without a command, list them."""
    if ctx.invoked_subcommand is None:
        manage.list_rooms(url, handle, as_json=as_json)
    else:
        check_place(ctx, url, handle, as_json)
