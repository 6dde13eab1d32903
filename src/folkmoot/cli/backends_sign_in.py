"""`folkmoot backends sign-in`: sign in to a server that wants it of each person."""

from __future__ import annotations

import time
import webbrowser
from typing import TYPE_CHECKING, Annotated, Final

from folkmoot.accounts.limits import SIGN_IN_SECONDS
from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.credentials import AsOption, UrlOption, signed_in
from folkmoot.cli.options import argument
from folkmoot.cli.output import say
from folkmoot.cli.tokens import PrintOption
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.cli.credentials import Login

LOOK_SECONDS: Final = 2.0


@with_json_option
def sign_in(
    name: Annotated[str, argument("NAME", "The server, by its namespace.")],
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    only_print: PrintOption = False,
) -> Output:
    """Sign in to a server behind the hub.

    For servers with auth = "oauth", to which each person signs in themselves. Opens the hub's page
    in your browser, which leads to the server's own sign-in, and waits until you are back. If the
    browser is not signed in at the hub yet, it asks you to; so does 'folkmoot open'.
    """
    hub, login = signed_in(url, handle)
    link = hub.begin_connection(namespace=name).url
    told = {"handle": login.handle, "namespace": name, "url": link}
    return Output(told, link, lambda: wait_for(hub, login, name, link, only_print=only_print))


def wait_for(hub: HubClient, login: Login, name: str, link: str, *, only_print: bool) -> None:
    """Open the page, and wait until they have signed in there."""
    if only_print or not webbrowser.open(link):
        say(f"Open this link to sign in to {name} as @{login.handle}.", err=True)
    if only_print:
        return
    began = time.time()
    while time.time() < began + SIGN_IN_SECONDS:
        for each in hub.list_connections().connections:
            if each.namespace == name and each.state == "live" and (each.since or 0) >= int(began):
                say(f"You are signed in to {name}.", err=True)
                return
        time.sleep(LOOK_SECONDS)
    raise e.CommandFailed(f"You did not sign in to {name} in time.")
