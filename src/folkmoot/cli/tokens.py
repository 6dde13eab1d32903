"""The tokens of an account: list them, create one, revoke one."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from folkmoot.cli.asking import AsOption, UrlOption, YesOption, confirm
from folkmoot.cli.credentials import Login, read_keyring
from folkmoot.cli.options import JsonOption, check_place, number
from folkmoot.cli.output import aligned, say
from folkmoot.cli.room.rest import Entrance, RestClient, listed
from folkmoot.cli.show import Column, tell_table, word
from folkmoot.cli.text import moment, one_line, say_data
from folkmoot.core.errors import CredentialNotFound

SHORT: Final = 10
"""Characters of an id that are shown; every command takes such a beginning."""
DAY: Final = 24 * 3600
MOST_DAYS: Final = 3650

LabelOption = Annotated[
    str,
    typer.Option(
        "--for", metavar="LABEL", help="What the token is for, such as the program that gets it.",
        show_default=False,
    ),
]  # fmt: skip
ExpiresOption = Annotated[
    int | None,
    number("--expires", 1, MOST_DAYS, "In how many days it expires.  [default: never]"),
]
IdArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="The token's id, or how it begins.", show_default=False),
]


class TokensClient(RestClient):
    """The tokens of one account."""

    base = "/v1/me/credentials"

    def list(self) -> list[dict[str, Any]]:
        """All of them, the oldest first."""
        return listed(self._ask("GET", "").get("credentials"))

    def create(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Create one."""
        return self._ask("POST", "", wanted)

    def revoke(self, token_id: str) -> None:
        """Revoke one."""
        self._ask("DELETE", f"/{token_id}")

    def find(self, beginning: str) -> dict[str, Any]:
        """The one token whose id begins like this."""
        found = [it for it in self.list() if str(it.get("id", "")).startswith(beginning)]
        exact = [it for it in found if it.get("id") == beginning]
        if len(exact or found) != 1:
            if not found:
                raise CredentialNotFound
            raise CredentialNotFound(
                f"{len(found)} of your tokens have ids that begin with {one_line(beginning)}."
            )
        return (exact or found)[0]


def client(url: str | None, handle: str | None) -> tuple[TokensClient, Login]:
    """The tokens of the account that was meant."""
    login = read_keyring().find(url, handle)
    return TokensClient(Entrance(login.hub, login.handle, login.token)), login


app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """List, create and revoke your tokens. Without a command, list them.

    A token opens your account. Give each program its own, so that you can revoke one without the
    others.
    """
    if ctx.invoked_subcommand is None:
        list_tokens(as_json=as_json)
    else:
        check_place(ctx, as_json)


@app.command("list")
def list_tokens(
    url: UrlOption = None, handle: AsOption = None, *, as_json: JsonOption = False
) -> None:
    """List the tokens that open your account, without their secrets."""
    hub, _ = client(url, handle)
    found = hub.list()
    if as_json:
        say_data(found)
        return
    columns = (
        Column("ID", "bold"),
        Column("For", wide=True),
        Column("Created", named=True),
        Column("Used", named=True),
        Column("Expires", named=True),
        Column(""),
    )
    tell_table(columns, map(row, found), "You have no tokens.")


def row(token: dict[str, Any]) -> list[str]:
    """A token as a row of the table."""
    days = (day(token.get(name)) for name in ("created_at", "used_at", "expires_at"))
    saved = "saved here" if token.get("current") is True else ""
    return [word(token.get("id"))[:SHORT], word(token.get("label")), *days, saved]


def day(seconds: Any) -> str:
    """A day as the reader's calendar shows it; a dash where there is none."""
    return "-" if seconds is None else moment(seconds).partition(" ")[0]


@app.command("create")
def create(
    label: LabelOption = "",
    expires: ExpiresOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Create a token, and show it this once.

    It opens your account until you revoke it, it expires, or you recover the account.
    """
    hub, login = client(url, handle)
    wanted: dict[str, Any] = {"label": label} if label else {}
    if expires is not None:
        wanted["expires_in"] = expires * DAY
    made = hub.create(wanted)
    if as_json:
        say_data(made)
        return
    until = made.get("expires_at")
    rows = [
        ("Token", word(made.get("token"))),
        ("ID", word(made.get("id"))[:SHORT]),
        *([] if until is None else [("Expires", moment(until))]),
    ]
    for line in aligned(rows):
        say(line)
    say()
    say(f"Anyone who has the token can act as @{login.handle}. It is not shown again.")
    say(f"'folkmoot tokens revoke {word(made.get('id'))[:SHORT]}' revokes it.")


@app.command("revoke")
def revoke(
    token_id: IdArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Revoke a token.

    Whatever is connected with it is disconnected at once. Asks first if it is the token that is
    saved here, unless --yes is given.
    """
    hub, login = client(url, handle)
    found = hub.find(token_id)
    is_own = found.get("current") is True
    if is_own:
        question = f"This token is the one saved here for {login.name}. Revoke it?"
        confirm(question, yes=yes)
    hub.revoke(str(found.get("id")))
    label = found.get("label")
    say(f"Revoked {word(found.get('id'))[:SHORT]}{f' ({one_line(str(label))})' if label else ''}.")
    if is_own:
        say(f"Next: 'folkmoot account recover {login.handle}' gets a new token.")
