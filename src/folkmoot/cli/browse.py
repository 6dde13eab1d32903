"""`folkmoot open`: the hub's page in the browser, signed in."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from folkmoot.cli.asking import AsOption, UrlOption, checked_handle, signed_in
from folkmoot.cli.operator import Operated
from folkmoot.cli.options import ConfigOption, DataOption, JsonOption, flag, option
from folkmoot.cli.output import say
from folkmoot.cli.serve import reachable
from folkmoot.cli.text import say_data
from folkmoot.core.errors import CommandFailed

ForOption = Annotated[
    str | None,
    option(
        "--for",
        "HANDLE",
        "For this account, as the operator, on the hub's own machine.",
        checked_handle,
    ),
]
OperateOption = Annotated[
    bool, flag("--operate", "With --for: the browser may run the hub too, as its operator.")
]
PrintOption = Annotated[bool, flag("--print", "Only print the link; do not open a browser.")]


def open_page(
    url: UrlOption = None,
    handle: AsOption = None,
    whose: ForOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    operate: OperateOption = False,
    only_print: PrintOption = False,
    as_json: JsonOption = False,
) -> None:
    """Open the hub's page in your browser, signed in.

    The link works once, and for two minutes. The browser stays signed in until you sign out there,
    revoke its session with 'folkmoot tokens revoke', or do not use it for a week.

    With --for and --operate, on the hub's own machine, the browser gets the pages for operators:
    people, servers, tapes, the audit log.
    """
    if operate and whose is None:
        raise typer.BadParameter("--operate needs --for HANDLE")
    if whose is None:
        hub, login = signed_in(url, handle)
        made = hub.create_code()
        link, expires_at, name = made.url, made.expires_at, login.handle
    else:
        if url or handle:
            raise typer.BadParameter("--for cannot be combined with --url or --as")
        operated = Operated(config, data)
        if not operated.runs:
            raise CommandFailed("No hub is running, so there is no page to open.")
        answer = operated.ask("folkmoot/create_code_for", {"handle": whose, "operate": operate})
        link, expires_at, name = reachable(answer["url"]), answer["expires_at"], whose
    if as_json:
        say_data({"handle": name, "url": link, "expires_at": expires_at})
        return
    say(link)
    if only_print or not webbrowser.open(link):
        say(f"Open this link to be signed in as @{name}. It works once, for two minutes.", err=True)
    else:
        say(f"Opened in your browser, signed in as @{name}.", err=True)
