"""What the commands of a person share: which hub, as whom, and text from the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.credentials import Keyring, Login, read_keyring
from folkmoot.cli.options import flag, option
from folkmoot.client.address import hub_url
from folkmoot.settings import FIELDS

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient

LOCAL_HUB = f"http://{FIELDS['host'].default}:{FIELDS['port'].default}"
MAX_TEXT = 4 * 1024 * 1024
"""Characters read from the standard input; the hub's own limit is lower, and it says so itself."""


def checked_url(value: str | None) -> Any:
    """The hub's address in one spelling, checked before the command begins."""
    if value is None:
        return None
    try:
        return hub_url(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def checked_handle(value: str | None) -> Any:
    """A handle as it is stored: without the @, in lower case, and without @localhost."""
    if value is None:
        return None
    return value.strip().removeprefix("@").lower().removesuffix("@localhost")


UrlOption = Annotated[
    str | None,
    option("--url", "URL", "The hub.  [default: that of your account]", checked_url),
]
AsOption = Annotated[
    str | None,
    option("--as", "HANDLE", "Which of your accounts.  [default: the first]", checked_handle),
]
HubOption = Annotated[
    str | None,
    option(
        "--url", "URL", f"The hub.  [default: that of your account, or {LOCAL_HUB}]", checked_url
    ),
]


def handle_argument(what: str) -> Any:
    """An argument that is someone's handle."""
    return typer.Argument(metavar="HANDLE", help=what, callback=checked_handle, show_default=False)


HandleArgument = Annotated[str, handle_argument("Who.")]
TextArgument = Annotated[
    str,
    typer.Argument(
        metavar="TEXT", help="What to write; - reads it from the standard input.",
        show_default=False,
    ),
]  # fmt: skip


def signed_in(url: str | None, handle: str | None) -> tuple[HubClient, Login]:
    """The hub, as the account that was meant."""
    login = read_keyring().find(url, handle)
    return hub_at(login.hub, login.token), login


def hub_at(url: str, token: str = "", *, guest: bool = False) -> HubClient:
    """The hub at an address; its methods are loaded only where a hub is asked."""
    from folkmoot.cli.client import HubClient

    return HubClient(url, token, guest=guest)


YesOption = Annotated[bool, flag("--yes", "Do not ask for confirmation.")]


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if the user means it; without a terminal only `--yes` says so."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask for confirmation; use --yes")
    typer.confirm(question, abort=True, err=True)


def hub_for(keyring: Keyring, url: str | None) -> str:
    """The hub for someone who may have no account yet."""
    return url or (keyring.accounts[0].hub if keyring.accounts else LOCAL_HUB)


def text_of(argument: str) -> str:
    """The text that was given, or that of the standard input without its last line end."""
    if argument != "-":
        return argument
    try:
        read = sys.stdin.buffer.read(MAX_TEXT + 1) if sys.stdin else b""
        text = read.decode("utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter("the standard input is not UTF-8 text") from None
    if len(read) > MAX_TEXT:
        raise typer.BadParameter("the standard input is larger than 4 MiB")
    return text.removesuffix("\n").removesuffix("\r")
