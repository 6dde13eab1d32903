"""`folkmoot tokens` and `folkmoot open`: tokens of an account, and its pages in a browser."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import UNSET

from folkmoot.cli.commands import Output, Place, Table, group, with_json_option
from folkmoot.cli.credentials import (
    AsOption,
    UrlOption,
    YesOption,
    checked_handle,
    confirm,
    signed_in,
)
from folkmoot.cli.limits import MAX_TOKEN_DAYS
from folkmoot.cli.operator import OperatedHub
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    argument,
    flag,
    number,
    option,
)
from folkmoot.cli.output import aligned, moment, one_line, say
from folkmoot.cli.serve import reachable
from folkmoot.cli.show import Column, word
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL

if TYPE_CHECKING:
    from folkmoot.operations.tokens import CredentialView


SHORT: Final = 10
"""Characters of an id that are shown; every command takes such a beginning."""
DAY: Final = 24 * 3600
KINDS: Final = {"browser": "browser", "app": "app", "device": "app"}
"""What opens an account beside tokens."""

LabelOption = Annotated[
    str, option("--label", "TEXT", "What the token is for, such as the program that gets it.")
]
ScopeOption = Annotated[
    str,
    option(
        "--scope", "SCOPES",
        "What it can do, such as 'mail.read rooms:square'.  [default: all that you can]",
    ),
]  # fmt: skip
ExpiresOption = Annotated[
    int | None,
    number("--expires", 1, MAX_TOKEN_DAYS, "In how many days it expires.  [default: never]"),
]
ForOption = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="HANDLE", callback=checked_handle, show_default=False,
        help="As the operator: a token for this account, with any scope.",
    ),
]  # fmt: skip
WhoseOption = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="HANDLE", callback=checked_handle, show_default=False,
        help="As the operator, on the hub's own machine: those of this account.",
    ),
]  # fmt: skip
IdArgument = Annotated[str, argument("ID", "The token's id, or its first characters.")]


def find(tokens: list[CredentialView], beginning: str, whose: str = "your") -> CredentialView:
    """The only token whose id begins with this text."""
    found = [it for it in tokens if it.id.startswith(beginning)]
    exact = [it for it in found if it.id == beginning]
    if len(exact or found) != 1:
        if not found:
            raise e.CredentialNotFound
        raise e.CredentialNotFound(
            f"{len(found)} of {whose} tokens have ids that begin with {one_line(beginning)}."
        )
    return (exact or found)[0]


@with_json_option
def list_tokens(
    url: UrlOption = None,
    handle: AsOption = None,
    for_handle: WhoseOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> Output:
    """List the tokens that open your account, without their secrets.

    Browsers that are signed in and apps that are connected are among them: what each can do, since
    when it is, and when it was last used. Revoking one signs it out. The operator can list those of
    any account, with --for on the hub's own machine.
    """
    hub, _ = Place(url, handle, data, config).hub_of(for_handle, "--for")
    found = hub.list_credentials().tokens
    columns = (
        Column("ID", "bold"), Column("Label", wide=True), Column("Scope", named=True),
        Column("Created", named=True), Column("Used", named=True), Column("Expires", named=True),
        Column(""),
    )  # fmt: skip
    nothing = "You have no tokens." if for_handle is None else f"@{for_handle} has no tokens."
    return Output(found, Table(columns, map(row, found), nothing))


def row(token: CredentialView) -> list[str]:
    """A token as a row of the table."""
    days = map(day, (token.created_at, token.used_at, token.expires_at))
    kind = "saved here" if token.current else KINDS.get(token.kind, "")
    return [word(token.id)[:SHORT], word(token.label), word(token.scope), *days, kind]


def day(seconds: int | None) -> str:
    """A day as the reader's calendar shows it; a dash where there is none."""
    return "-" if seconds is None else moment(seconds).partition(" ")[0]


@with_json_option
def create(
    scope: ScopeOption = "",
    label: LabelOption = "",
    expires: ExpiresOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    for_handle: ForOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> Output:
    """Create a token, and show it this once.

    It opens your account until you revoke it, it expires, or you recover the account. Give a
    program no more than it needs:

    mail.read, mail.send, mail.delete, contacts, account.read, account, rooms, rooms.manage, decide,
    tools. For one room or one server alone: rooms:square, decide:square, tools:github.

    The operator can create one for any account, with --for on the hub's own machine. Only such a
    token can have the scope 'operate': a program that has it operates the hub over the network.
    """
    hub, who = Place(url, handle, data, config).hub_of(for_handle, "--for")
    made = hub.create_credential(
        label=label or UNSET,
        expires_in=UNSET if expires is None else expires * DAY,
        scope=scope or UNSET,
    )
    rows = [
        ("Token", word(made.token)),
        ("ID", word(made.id)[:SHORT]),
        ("Scope", word(made.scope)),
        *([] if made.expires_at is None else [("Expires", moment(made.expires_at))]),
    ]
    limits = "" if made.scope == ALL else " within its scope"
    return Output(
        made,
        *aligned(rows),
        "",
        f"Anyone who has the token can act as @{who}{limits}. It is not shown again.",
        None if for_handle else f"'folkmoot tokens revoke {word(made.id)[:SHORT]}' revokes it.",
    )


@with_json_option
def revoke(
    token_id: IdArgument,
    url: UrlOption = None,
    handle: AsOption = None,
    for_handle: WhoseOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    yes: YesOption = False,
) -> Output:
    """Revoke a token, sign a browser out, or disconnect an app.

    Whatever is connected with it is disconnected at once. Asks first if it is the token that is
    saved here, unless --yes is given. The operator can revoke one of any account, with --for on the
    hub's own machine.
    """
    place = Place(url, handle, data, config)
    if for_handle is not None:
        operated, _ = place.hub_of(for_handle, "--for")
        found = find(operated.list_credentials().tokens, token_id, f"@{for_handle}'s")
        operated.revoke_credential(found.id)
        return Output(found, f"Revoked {word(found.id)[:SHORT]} of @{for_handle}.")
    place.check("--for", for_handle)
    hub, login = signed_in(url, handle)
    if login.client_id:
        raise e.CommandFailed(
            "This computer is signed in by 'folkmoot login', which can revoke only itself, with "
            f"'folkmoot logout'. Revoke others at {login.hub}/account."
        )
    found = find(hub.list_credentials().tokens, token_id)
    is_own = found.current
    if is_own:
        question = f"This token is the one saved here for {login.name}. Revoke it?"
        confirm(question, yes=yes)
    hub.revoke_credential(found.id)
    label = f" ({one_line(found.label)})" if found.label else ""
    return Output(
        found,
        f"Revoked {word(found.id)[:SHORT]}{label}.",
        f"Next: 'folkmoot account recover {login.handle}' gets a new token." if is_own else None,
    )


app = group(
    {"list": list_tokens, "create": create, "revoke": revoke},
    """List, create and revoke your tokens. Without a command, list them.

    A token opens your account. Give each program its own, so that you can revoke one without the
    others.
    """,
    list_tokens,
)

ForWhomOption = Annotated[
    str | None,
    option(
        "--for", "HANDLE",
        "For this account, as the operator, on the hub's own machine.",
        checked_handle,
    ),
]  # fmt: skip
OperateOption = Annotated[
    bool, flag("--operate", "With --for: the browser can run the hub too, as its operator.")
]
PrintOption = Annotated[bool, flag("--print", "Only print the link; do not open a browser.")]


@with_json_option
def open_page(
    url: UrlOption = None,
    handle: AsOption = None,
    whose: ForWhomOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    operate: OperateOption = False,
    only_print: PrintOption = False,
) -> Output:
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
        operated = OperatedHub(config, data)
        if not operated.runs:
            raise e.CommandFailed("No hub is running, so there is no page to open.")
        made = operated.of(whose).create_code(operate=operate)
        link, expires_at, name = reachable(made.url), made.expires_at, whose

    def opened() -> None:
        if only_print or not webbrowser.open(link):
            told = f"Open this link to be signed in as @{name}. It works once, for two minutes."
        else:
            told = f"Opened in your browser, signed in as @{name}."
        say(told, err=True)

    return Output({"handle": name, "url": link, "expires_at": expires_at}, link, opened)
