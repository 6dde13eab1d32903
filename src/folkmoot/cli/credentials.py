"""The accounts someone uses from this computer, in a file that only they can read."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from folkmoot.core.errors import CredentialsUnusable, NotSignedIn
from folkmoot.staging import staged

VARIABLE = "FOLKMOOT_CREDENTIALS"
MAX_BYTES = 1_048_576

GUEST_UNKNOWN = "The hub no longer accepts this guest. Ask for a new invitation."
ACCOUNT_UNKNOWN = (
    "The hub does not accept the saved token; 'folkmoot account recover HANDLE' gets a new one."
)


class Login(msgspec.Struct, frozen=True):
    """One account on one hub."""

    hub: str
    handle: str
    token: str
    recovery_code: str = ""

    def __repr__(self) -> str:
        # May end up in a traceback; the token must not.
        return f"Login({self.name})"

    @property
    def name(self) -> str:
        """How the account is told from the others."""
        return f"@{self.handle} on {self.hub}"


class GuestPass(msgspec.Struct, frozen=True):
    """What lets a guest, who has no account, into one room."""

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
            raise NotSignedIn(nobody(hub, handle))
        hubs = {login.hub for login in fitting}
        if handle is not None and hub is None and len(hubs) > 1 and fitting[0] != self.accounts[0]:
            named = " and ".join(sorted(hubs))
            raise NotSignedIn(f"@{handle} is an account on {named}; say which with --url.")
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
        """The latest pass for a room that fits, if there is one."""
        fitting = [
            it for it in self.guests
            if it.room == room and hub in (None, it.hub) and name in (None, it.name)
        ]  # fmt: skip
        return fitting[-1] if fitting else None

    def put_guest(self, new: GuestPass) -> None:
        """Keep a pass, after the others; one of the same guest goes."""
        who = (new.hub, new.room, new.name)
        kept = [it for it in self.guests if (it.hub, it.room, it.name) != who]
        self.guests = [*kept, new]

    def prefer(self, login: Login) -> None:
        """Use this account when none is named."""
        self.drop(login)
        self.accounts.insert(0, login)


def fits(login: Login, hub: str | None, handle: str | None) -> bool:
    """Whether an account is one of those meant."""
    return (hub is None or login.hub == hub) and (handle is None or login.handle == handle)


def nobody(hub: str | None, handle: str | None) -> str:
    """What to do when no account fits."""
    who = f" as @{handle}" if handle else ""
    where = f" on {hub}" if hub else ""
    return (
        f"You are not signed in{who}{where}. 'folkmoot register HANDLE' creates an "
        "account; 'folkmoot account recover HANDLE' recovers one you have."
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
        with telling(path), path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise CredentialsUnusable(
                    f"{path}: others can read it. Run 'chmod 600' on it; if they may have read it, "
                    "'folkmoot account recover' replaces the tokens."
                )
            return msgspec.json.decode(file.read(MAX_BYTES), type=Keyring)
    except msgspec.DecodeError:
        raise CredentialsUnusable(
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
        with telling(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = stack.enter_context(path.with_name(f"{path.name}.lock").open("wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            keyring = read_keyring()
            write(path, keyring)
        yield keyring
        with telling(path):
            write(path, keyring)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what the system says of the file into one clear line."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise CredentialsUnusable(f"{path}: {reason}.") from None


def write(path: Path, keyring: Keyring) -> None:
    """Put the whole file in place at once, readable by its owner alone."""
    data = msgspec.json.format(msgspec.json.encode(keyring), indent=2) + b"\n"
    with staged(path, data) as part:
        part.replace(path)
