"""Your accounts: create one, recover one, show, change and delete it, choose which to use."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from folkmoot.cli.backup import export_own
from folkmoot.cli.commands import (
    Fields,
    Output,
    Table,
    account_command,
    group,
    with_json_option,
)
from folkmoot.cli.credentials import (
    ACCOUNT_UNKNOWN,
    AsOption,
    HandleArgument,
    HubOption,
    Keyring,
    Login,
    UrlOption,
    YesOption,
    changing,
    checked_handle,
    confirm_name,
    credentials_path,
    handle_argument,
    hub_at,
    hub_for,
    login_for,
    read_keyring,
)
from folkmoot.cli.options import (
    JsonOption,
    argument,
    choice,
    flag,
    option,
)
from folkmoot.cli.output import aligned, say, say_data
from folkmoot.cli.show import Column
from folkmoot.client.http import hub_url
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient

INVITE_PATH = "/invite/"

InviteOption = Annotated[
    str | None, option("--invite", "LINK", "The link you were sent, or the code at its end.")
]
AgentOption = Annotated[bool, flag("--agent", "The account is for a program.")]
WantedArgument = Annotated[
    str, handle_argument("The handle you want: 3 to 20 letters, digits and underscores.")
]
LostArgument = Annotated[str, handle_argument("The account's handle.")]
PrivacyOption = Annotated[
    str | None,
    choice(
        "--privacy", "LEVEL", ("public", "contacts_only", "private"),
        "public, contacts_only or private.",
    ),
]  # fmt: skip
TOKEN = re.compile(r"sk_[0-9a-f]{64}")
TokenOption = Annotated[
    str, option("--token", "-", "- asks for the token, or reads it from the standard input.")
]
WhoseTokenOption = Annotated[
    str | None,
    option(
        "--as", "HANDLE",
        "Whose token it is, if its scope does not let it read that itself.", checked_handle,
    ),
]  # fmt: skip
NewHandleArgument = Annotated[str, argument("NEW", "The new handle.")]


def register(
    handle: WantedArgument,
    invite: InviteOption = None,
    url: HubOption = None,
    *,
    agent: AgentOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create an account on a hub, and save its token here.

    Keep the token and the recovery code in a safe place. The recovery code is shown once.
    """
    code = None
    if invite:
        code, url = invite_of(invite, url)
    kind: Literal["person", "agent"] = "agent" if agent else "person"

    def create(hub: str) -> Login:
        made = hub_at(hub).create_account(handle, invite_code=code, account_type=kind)
        return Login(hub, made.handle, made.token, made.recovery_code)

    login = enter(create, url, as_json=as_json)
    if not as_json:
        chosen = show_saved_place(read_keyring(), login)
        say(
            "Next: give the token to the program: "
            f"FOLKMOOT_TOKEN=$(folkmoot account token {login.handle})"
            if agent
            else f"Next: 'folkmoot connect CLIENT{chosen}' adds the hub to your assistant, as you."
        )


def invite_of(given: str, url: str | None) -> tuple[str, str | None]:
    """The code of an invite, and the hub that its link leads to."""
    link, found, code = given.strip().partition(INVITE_PATH)
    if not found:
        if "/" in link:
            raise typer.BadParameter(f"--invite must be a link with {INVITE_PATH}CODE, or a code")
        return link, url
    try:
        hub = hub_url(link)
    except ValueError as error:
        raise typer.BadParameter(f"--invite {error}") from None
    if url is not None and url != hub:
        raise typer.BadParameter(f"the invite is to {hub}, and --url says {url}")
    return re.split("[/?#]", code, maxsplit=1)[0], hub


def recover(handle: LostArgument, url: HubOption = None, *, as_json: JsonOption = False) -> None:
    """Get a new token with the recovery code.

    The old token stops working. Uses the recovery code saved here; if none is saved, asks for it,
    or reads it from the standard input.
    """
    keyring = read_keyring()
    hub = hub_for(keyring, url)
    kept = next((it for it in keyring.accounts if (it.hub, it.handle) == (hub, handle)), None)
    code = (kept.recovery_code if kept else "") or ask_secret("recovery code")

    def get_back(hub: str) -> Login:
        made = hub_at(hub).recover_account(handle, code)
        return Login(hub, made.handle, made.token, code)

    login = enter(get_back, hub, as_json=as_json)
    if not as_json:
        chosen = show_saved_place(read_keyring(), login)
        say(
            "The old token no longer works. Next: "
            f"'folkmoot connect CLIENT{chosen} --force' gives an assistant the new one."
        )


def add(
    token: TokenOption = "-",  # noqa: S107
    url: HubOption = None,
    handle: WhoseTokenOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Save an account you have on this computer.

    Asks for one of its tokens, or reads it from the standard input, and checks it with the hub.
    Create one for each computer with 'folkmoot tokens create'.
    """
    if token != "-":  # noqa: S105
        raise typer.BadParameter(
            "other programs can read arguments. Use '--token -', and give the token when asked or "
            "on the standard input"
        )
    given = ask_secret("token")
    if TOKEN.fullmatch(given) is None:
        raise typer.BadParameter("a token is sk_ and 64 letters and digits")
    with changing() as keyring:
        hub = hub_for(keyring, url)
        own = owner_of(hub, given, handle)
        kept = next((it for it in keyring.accounts if (it.hub, it.handle) == (hub, own)), None)
        login = Login(hub, own, given, kept.recovery_code if kept else "")
        keyring.put(login)
    if as_json:
        say_data(named(login))
        return
    say(f"Saved {login.name} in {credentials_path()}, which only you can read.")
    show_default(read_keyring(), login)


def owner_of(hub: str, token: str, handle: str | None) -> str:
    """Whose a token is; the hub tells it unless the token's scope is too small."""
    try:
        own = hub_at(hub, token).get_account().handle
    except e.NotSignedIn as error:
        if error.message != ACCOUNT_UNKNOWN:
            raise
        raise e.NotSignedIn(f"{hub} does not accept this token. Nothing was saved.") from None
    except e.ToolRefused as error:
        if error.data.get("refused") != e.ScopeMissing.code:
            raise
        if handle is None:
            raise typer.BadParameter(
                "the token is valid, but its scope does not let it read whose it is; add "
                "--as HANDLE"
            ) from None
        return handle
    if handle not in (None, own):
        raise typer.BadParameter(f"this is a token of @{own}, not of @{handle}")
    return own


def ask_secret(what: str) -> str:
    """A secret, typed or piped; never an argument, which every process could read."""
    if sys.stdin is not None and sys.stdin.isatty():
        return str(typer.prompt(what.capitalize(), hide_input=True, err=True)).strip()
    secret = sys.stdin.readline(200).strip() if sys.stdin else ""
    if not secret:
        raise typer.BadParameter(f"the standard input has no {what}")
    return secret


def enter(get: Callable[[str], Login], url: str | None, *, as_json: bool) -> Login:
    """Get a token from a hub, keep it, and show it this once."""
    login: Login | None = None
    try:
        with changing() as keyring:
            login = get(hub_for(keyring, url))
            keyring.put(login)
    except e.CredentialsUnusable:
        # The hub has given a token that no file keeps: whoever reads this must keep it now.
        if login is not None:
            show_secrets(login, as_json=as_json, kept=False)
        raise
    show_secrets(login, as_json=as_json, kept=True)
    return login


def show_secrets(login: Login, *, as_json: bool, kept: bool) -> None:
    """The token and the code; where no file keeps them, this once."""
    if as_json:
        say_data(login)
        return
    say(f"You are @{login.handle} on {login.hub}.")
    say()
    rows = [("Token", login.token), ("Recovery code", login.recovery_code)]
    for line in aligned([(name, value) for name, value in rows if value]):
        say(f"  {line}")
    say()
    once = "" if kept else " They are not shown again."
    say(f"Keep both in a safe place: anyone who has one can act as you.{once}")


def show_saved_place(keyring: Keyring, login: Login) -> str:
    """Say where the account is kept and how to use it; return the option that chooses it."""
    say(f"They are also saved in {credentials_path()}, which only you can read.")
    say(
        f"'folkmoot account token {login.handle}' shows the token again. The recovery code is not "
        "shown again."
    )
    return show_default(keyring, login)


def show_default(keyring: Keyring, login: Login) -> str:
    """Say if commands run as someone else; return the option that chooses the account."""
    first = keyring.accounts[0]
    if first == login:
        return ""
    same = sum(kept.handle == login.handle for kept in keyring.accounts) > 1
    chosen = f"{login.handle} --url {login.hub}" if same else login.handle
    say(f"Commands still run as {first.name}. 'folkmoot account use {chosen}' changes the default.")
    return f" --as {chosen}"


@account_command
def whoami(hub: HubClient, login: Login) -> Output:
    """Show your account as the hub knows it."""
    return own_account(hub, login)


def own_account(hub: HubClient, login: Login) -> Output:
    own = hub.get_account()
    shown = Fields(
        ("Handle", f"@{own.handle}"),
        ("Hub", login.hub),
        ("Name", own.display_name),
        ("Bio", own.bio),
        ("Status", own.status),
        ("Privacy", own.privacy),
        ("Account", own.account_type),
    )
    return Output({"hub": login.hub, **msgspec.to_builtins(own)}, shown)


@account_command
def profile(
    hub: HubClient,
    login: Login,
    name: Annotated[str | None, option("--name", "TEXT", "The name others see.")] = None,
    bio: Annotated[str | None, option("--bio", "TEXT", "A few words about you.")] = None,
    status: Annotated[str | None, option("--status", "TEXT", "What you are doing.")] = None,
    privacy: PrivacyOption = None,
) -> Output:
    """Change your profile, or show it."""
    changes: dict[str, Any] = {
        "display_name": name, "bio": bio, "status": status, "privacy": privacy
    }  # fmt: skip
    if all(value is None for value in changes.values()):
        return own_account(hub, login)
    return Output(hub.change_profile(**changes), "Profile updated.")


@with_json_option
def change_handle(new: NewHandleArgument, url: UrlOption = None, handle: AsOption = None) -> Output:
    """Change your handle.

    The old one redirects to you for 30 days.
    """
    login = login_for(url, handle)
    with changing() as keyring:
        answer = hub_at(login.hub, login.token).change_handle(new)
        changed = msgspec.structs.replace(login, handle=answer.new_handle)
        keyring.accounts = [changed if kept == login else kept for kept in keyring.accounts]
    told = f"You are now @{changed.handle}. @{login.handle} redirects to you for 30 days."
    return Output(answer, told)


@with_json_option
def delete_account(
    url: UrlOption = None, handle: AsOption = None, *, yes: YesOption = False
) -> Output:
    """Delete your account and all its mail permanently.

    What you said in rooms stays there, and older backups of the hub still contain your mail. Asks
    for your handle first, unless --yes is given.
    """
    login = login_for(url, handle)
    if not yes:
        confirm_name(
            login.handle,
            f"this deletes {login.name} and all its mail permanently.",
            "Type the handle to confirm",
            "Nothing was deleted.",
        )
    with changing() as keyring:
        hub_at(login.hub, login.token).delete_account(login.handle)
        keyring.drop(login)
    done = f"Deleted {login.name}. Older backups of the hub still contain your mail."
    return Output(named(login), done)


def named(login: Login) -> dict[str, str]:
    """What a program is told of a saved account."""
    return {"handle": login.handle, "hub": login.hub}


@with_json_option
def list_accounts() -> Output:
    """List the accounts saved on this computer."""
    kept = read_keyring().accounts
    rows = [
        (f"@{login.handle}", login.hub, "" if number else "yes")
        for number, login in enumerate(kept)
    ]
    columns = (Column("Handle", "bold"), Column("Hub"), Column("Default"))
    nothing = "No account is saved here. 'folkmoot register HANDLE' creates one."
    return Output(list(map(named, kept)), Table(columns, rows, nothing))


@with_json_option
def use(handle: HandleArgument, url: UrlOption = None) -> Output:
    """Make an account the default."""
    with changing() as keyring:
        login = keyring.find(url, handle)
        keyring.prefer(login)
    return Output(named(login), f"Commands now run as {login.name}.")


@with_json_option
def forget(handle: HandleArgument, url: UrlOption = None) -> Output:
    """Remove an account from this computer; it stays on its hub."""
    with changing() as keyring:
        login = keyring.find(url, handle)
        keyring.drop(login)
    return Output(named(login), f"{login.name} is no longer saved here.")


@with_json_option
def token(handle: HandleArgument, url: UrlOption = None) -> Output:
    """Print the token of a saved account, for a program.

    Anyone who has the token can act as the account.
    """
    kept = login_for(url, handle).token
    return Output({"token": kept}, kept)


app = group(
    {
        "list": list_accounts,
        "add": add,
        "use": use,
        "forget": forget,
        "token": token,
        "whoami": whoami,
        "profile": profile,
        "change-handle": change_handle,
        "recover": recover,
        "export": export_own,
        "delete": delete_account,
    },
    "Show, change, recover or delete your accounts. Without a command, list them.",
    list_accounts,
)
