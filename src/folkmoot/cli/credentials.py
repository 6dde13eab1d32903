"""The accounts saved on this computer, and hub clients signed in with them."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from folkmoot.cli.limits import MAX_TYPED_TEXT
from folkmoot.cli.options import argument, flag, option
from folkmoot.cli.output import ExitCode, complain, say
from folkmoot.client.http import hub_url
from folkmoot.core import errors as e
from folkmoot.settings import FIELDS
from folkmoot.staging import file_errors, staged

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient


VARIABLE = "FOLKMOOT_CREDENTIALS"
TOKEN_VARIABLE = "FOLKMOOT_TOKEN"  # noqa: S105 - its name
URL_VARIABLE = "FOLKMOOT_URL"

GUEST_UNKNOWN = "The hub no longer accepts this guest. Ask for a new invitation."
ACCOUNT_UNKNOWN = (
    "The hub does not accept the saved token; 'folkmoot account recover HANDLE' gets a new one, or "
    "'folkmoot login URL' signs you in with a browser."
)


class Login(msgspec.Struct, frozen=True, omit_defaults=True):
    """One account on one hub."""

    hub: str
    handle: str
    token: str
    recovery_code: str = ""
    refresh_token: str = ""
    """What gets the next token, where 'folkmoot login' signed in."""
    client_id: str = ""
    """As what 'folkmoot login' signed in; empty where the token lasts."""
    expires_at: int = 0

    def __repr__(self) -> str:
        # May end up in a traceback; the token must not.
        return f"Login({self.name})"

    @property
    def name(self) -> str:
        """How the account is told from the others."""
        return f"@{self.handle} on {self.hub}"


class GuestPass(msgspec.Struct, frozen=True):
    """The token of a guest, who has no account, for one room."""

    hub: str
    room: str
    name: str
    credential: str

    def __repr__(self) -> str:
        return f"GuestPass({self.name} in {self.room} on {self.hub})"


class Keyring(msgspec.Struct, omit_defaults=True):
    """What the file holds; the first account is the one used when none is named."""

    accounts: list[Login] = []
    guests: list[GuestPass] = []

    def find(self, hub: str | None = None, handle: str | None = None) -> Login:
        """The account that was meant: the first that fits, since the default stands first."""
        fitting = [login for login in self.accounts if fits(login, hub, handle)]
        if not fitting:
            raise e.NotSignedIn(nobody(hub, handle))
        hubs = {login.hub for login in fitting}
        if handle is not None and hub is None and len(hubs) > 1 and fitting[0] != self.accounts[0]:
            named = " and ".join(sorted(hubs))
            raise e.NotSignedIn(f"@{handle} is an account on {named}; say which with --url.")
        return fitting[0]

    def put(self, login: Login) -> None:
        """Keep an account in place of what was kept of it, or after the others."""
        for place, kept in enumerate(self.accounts):
            if fits(kept, login.hub, login.handle):
                self.accounts[place] = login
                return
        self.accounts.append(login)

    def drop(self, login: Login) -> None:
        """Keep nothing of an account."""
        self.accounts = [kept for kept in self.accounts if not fits(kept, login.hub, login.handle)]

    def find_guest(self, room: str, hub: str | None, name: str | None) -> GuestPass | None:
        """The latest guest pass that matches, if any."""
        fitting = [
            it for it in self.guests
            if it.room == room and hub in (None, it.hub) and name in (None, it.name)
        ]  # fmt: skip
        return fitting[-1] if fitting else None

    def put_guest(self, new: GuestPass) -> None:
        """Save a guest pass, replacing an earlier one of the same guest."""
        who = (new.hub, new.room, new.name)
        kept = [it for it in self.guests if (it.hub, it.room, it.name) != who]
        self.guests = [*kept, new]

    def prefer(self, login: Login) -> None:
        """Use this account when none is named."""
        self.drop(login)
        self.accounts.insert(0, login)


def fits(login: Login, hub: str | None, handle: str | None) -> bool:
    """Whether a saved account matches the hub and handle asked for."""
    return (hub is None or login.hub == hub) and (handle is None or login.handle == handle)


def nobody(hub: str | None, handle: str | None) -> str:
    """What to do when no account fits."""
    who = f" as @{handle}" if handle else ""
    where = f" on {hub}" if hub else ""
    return (
        f"You are not signed in{who}{where}. 'folkmoot login {hub or 'URL'}' signs you in with a "
        "browser; 'folkmoot register HANDLE' creates an account; 'folkmoot account add' saves one "
        "you have, and 'folkmoot account recover HANDLE' recovers it."
    )


def credentials_path() -> Path:
    """Where the file is: named by a variable, or in the user's folder for settings."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path("~/.config").expanduser()
    return folder / "folkmoot" / "credentials.json"


def read_keyring() -> Keyring:
    """The accounts kept so far; none when there is no file."""
    path = credentials_path()
    if not path.exists():
        return Keyring()
    try:
        with file_errors(path, e.CredentialsUnusable), path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise e.CredentialsUnusable(
                    f"{path}: others can read it. Run 'chmod 600' on it; if they may have read it, "
                    "'folkmoot account recover' replaces the tokens."
                )
            return msgspec.json.decode(file.read(1_048_576), type=Keyring)
    except msgspec.DecodeError:
        raise e.CredentialsUnusable(
            f"{path}: is not a valid credentials file. Fix it or move it away."
        ) from None


@contextmanager
def changing() -> Iterator[Keyring]:
    """The accounts, to be changed; what was changed is written when the block is left well.

    Entered before the hub is asked for anything, so that a file that cannot be written is found
    before there is a token to lose. Another command that changes the file waits meanwhile.
    """
    path = credentials_path()
    with ExitStack() as stack:
        with file_errors(path, e.CredentialsUnusable):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = stack.enter_context(path.with_name(f"{path.name}.lock").open("wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            keyring = read_keyring()
            write(path, keyring)
        yield keyring
        with file_errors(path, e.CredentialsUnusable):
            write(path, keyring)


def write(path: Path, keyring: Keyring) -> None:
    """Put the whole file in place at once, readable by its owner alone."""
    data = msgspec.json.format(msgspec.json.encode(keyring), indent=2) + b"\n"
    with staged(path, data) as part:
        part.replace(path)


LOCAL_HUB = f"http://{FIELDS['host'].default}:{FIELDS['port'].default}"


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
    str | None, option("--url", "URL", "The hub.  [default: that of your account]", checked_url)
]
AsOption = Annotated[
    str | None,
    option(
        "--as", "HANDLE", "Which of your accounts.  [default: as set by 'account use']",
        checked_handle,
    ),
]  # fmt: skip
HubOption = Annotated[
    str | None,
    option(
        "--url", "URL", f"The hub.  [default: that of your account, or {LOCAL_HUB}]", checked_url
    ),
]


def handle_argument(what: str) -> Any:
    """A command-line argument that takes a handle."""
    return typer.Argument(metavar="HANDLE", help=what, callback=checked_handle, show_default=False)


HandleArgument = Annotated[str, handle_argument("Who.")]
TextArgument = Annotated[
    str, argument("TEXT", "What to write; - reads it from the standard input.")
]


def login_for(url: str | None, handle: str | None) -> Login:
    """The account that was meant, with a token that is good for some minutes."""
    return login_from_environment(url, handle) or fresh(read_keyring().find(url, handle))


def login_from_environment(url: str | None, handle: str | None) -> Login | None:
    """The account of the token in the environment, which comes before saved ones; not with --as."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token or handle is not None:
        return None
    try:
        hub = url or hub_url(os.environ.get(URL_VARIABLE) or LOCAL_HUB)
    except ValueError as error:
        raise e.NotSignedIn(f"{URL_VARIABLE} {error}.") from None
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise e.NotSignedIn(f"{TOKEN_VARIABLE} is not a token.")
    try:
        return Login(hub, hub_at(hub, token).get_account().handle, token)
    except e.NotSignedIn as error:
        told = f"{hub} does not accept the token in {TOKEN_VARIABLE}."
        raise e.NotSignedIn(told if error.message == ACCOUNT_UNKNOWN else error.message) from None
    except e.ToolRefused as error:
        if error.data.get("refused") != e.ScopeMissing.code:
            raise
        return Login(hub, "", token)


def fresh(login: Login, refused: str = "") -> Login:
    """A saved account with a token that is good for some minutes, and is not the `refused` one."""
    if not login.client_id:
        return login
    from folkmoot.cli.login import renewed

    return renewed(login, refused)


def signed_in(url: str | None, handle: str | None) -> tuple[HubClient, Login]:
    """A hub client with the chosen saved account."""
    login = login_for(url, handle)
    return hub_for_login(login), login


def hub_for_login(login: Login) -> HubClient:
    """A hub client with a saved account, which renews a token that ends too early."""
    hub = hub_at(login.hub, login.token)
    if login.client_id:
        hub.renew = lambda refused: fresh(login, refused).token
    return hub


def token_source(login: Login) -> str | Callable[[], str]:
    """The token of a saved account; of one that does not last, what gives the one of the moment."""
    return (lambda: login_for(login.hub, login.handle).token) if login.client_id else login.token


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


def confirm_name(name: str, warning: str, prompt: str, otherwise: str) -> None:
    """Let only someone go on who types a name, for what cannot be undone."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask for confirmation; use --yes")
    complain(warning, kind="warning")
    typed = str(typer.prompt(prompt, default="", show_default=False, err=True))
    if typed.strip().removeprefix("@").lower() != name:
        say(otherwise, err=True)
        raise typer.Exit(ExitCode.FAILED)


def hub_for(keyring: Keyring, url: str | None) -> str:
    """The hub for someone who may have no account yet."""
    return url or (keyring.accounts[0].hub if keyring.accounts else LOCAL_HUB)


def text_of(argument: str) -> str:
    """The text that was given, or that of the standard input without its last line end."""
    if argument != "-":
        return argument
    try:
        read = sys.stdin.buffer.read(MAX_TYPED_TEXT + 1) if sys.stdin else b""
        text = read.decode("utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter("the standard input is not UTF-8 text") from None
    if len(read) > MAX_TYPED_TEXT:
        raise typer.BadParameter("the standard input is larger than 4 MiB")
    return text.removesuffix("\n").removesuffix("\r")
