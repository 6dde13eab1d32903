"""Where the bridge keeps what is its own, and as whom its commands act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from folkmoot.cli.asking import hub_at
from folkmoot.cli.credentials import Login, credentials_path, read_keyring
from folkmoot.core.errors import DeviceKeyUnusable

if TYPE_CHECKING:
    from folkmoot.bridge.keys import Keys, KeyStore
    from folkmoot.bridge.ledger import Ledger

KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file", metavar="FILE", show_default=False,
        help="The file of device keys.  [default: device-keys.json beside your credentials]",
    ),
]  # fmt: skip
KeyringOption = Annotated[
    bool,
    typer.Option(
        "--keyring", show_default=False,
        help="Keep a new key in the computer's keyring, not in the file.",
    ),
]  # fmt: skip


class Own:
    """One's account, its keys and its hub, for a command."""

    def __init__(self, url: str | None, handle: str | None, key_file: Path | None) -> None:
        self.login: Login = read_keyring().find(url, handle)
        self.hub = hub_at(self.login.hub, self.login.token)
        self.store = key_store(key_file)

    def keys(self) -> Keys:
        """The account's keys; they may be kept under a handle it had before."""
        found = self.store.find(self.login.hub, self.login.handle)
        if found is None:
            found = self.store.find_published(self.login.hub, self.published())
        if found is None:
            raise DeviceKeyUnusable(
                f"There is no device key of {self.login.name} here. 'folkmoot bridge' creates "
                "one on first use; 'folkmoot bridge key import' imports one."
            )
        return found

    def published(self) -> str:
        """The key that the hub names as the account's; empty when it names none."""
        return self.hub.get_account().client_public_key or ""

    def publish(self, public: str) -> None:
        """Have the hub name a key as the account's, and say that it reads letters."""
        from folkmoot.bridge.crypto import VERSION

        self.hub.change_profile(client_public_key=public, payload_formats=[VERSION])


def key_path(given: Path | None) -> Path:
    """The file of device keys."""
    from folkmoot.bridge.keys import FILE_NAME

    return credentials_path().with_name(FILE_NAME) if given is None else absolute(given)


def key_store(given: Path | None) -> KeyStore:
    """What is in the file of device keys."""
    from folkmoot.bridge.keys import KeyStore

    return KeyStore(key_path(given))


def ledger_path() -> Path:
    """The file in which the bridge remembers correspondents' keys."""
    from folkmoot.bridge.ledger import FILE_NAME, state_folder

    return state_folder() / FILE_NAME


@contextmanager
def ledger() -> Iterator[Ledger]:
    """What the bridge remembers."""
    from folkmoot.bridge.ledger import Ledger

    opened = Ledger(ledger_path())
    try:
        yield opened
    finally:
        opened.close()


def absolute(path: Path) -> Path:
    """A path as the user meant it."""
    return path.expanduser().absolute()


def now() -> float:
    """The time."""
    from folkmoot.clock import SystemClock

    return SystemClock.now()
