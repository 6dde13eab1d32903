"""`folkmoot bridge key`: the key of this device, shown, exported, imported and replaced."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli.commands import (
    Command,
    Lazy,
    Output,
    Warned,
    group,
    with_json_option,
    with_options,
)
from folkmoot.cli.credentials import (
    AsOption,
    Login,
    UrlOption,
    YesOption,
    confirm,
    credentials_path,
    hub_for_login,
    login_for,
)
from folkmoot.cli.options import argument, flag, number, option
from folkmoot.cli.output import (
    aligned,
    moment,
)
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.bridge.keys import Keys, KeyStore
    from folkmoot.bridge.ledger import Ledger


KeyFileOption = Annotated[
    Path | None,
    option(
        "--key-file", "FILE",
        "The file of device keys.  [default: device-keys.json beside your credentials]",
    ),
]  # fmt: skip
KeyringOption = Annotated[
    bool, flag("--keyring", "Keep a new key in the computer's keyring, not in the file.")
]


class OwnDevice:
    """The user's account, keys and hub on this device, for one command."""

    def __init__(self, url: str | None, handle: str | None, key_file: Path | None) -> None:
        self.login: Login = login_for(url, handle)
        self.hub = hub_for_login(self.login)
        self.store = key_store(key_file)

    def keys(self) -> Keys:
        """The account's keys; they may be kept under a handle it had before."""
        found = self.store.find(self.login.hub, self.login.handle)
        if found is None:
            found = self.store.find_published(self.login.hub, self.published())
        if found is None:
            raise e.DeviceKeyUnusable(
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


def device_command(function: Command) -> Command:
    """A command that uses the keys of one of the accounts saved here."""

    def opens(chosen: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
        return {"own": Lazy(cache(lambda: OwnDevice(**chosen)))}

    options = {"key_file": KeyFileOption, "url": UrlOption, "handle": AsOption}
    return with_json_option(with_options(function, options, ("own",), opens))


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
    """Open the bridge's ledger of letters and pinned keys."""
    from folkmoot.bridge.ledger import Ledger

    opened = Ledger(ledger_path())
    try:
        yield opened
    finally:
        opened.close()


def absolute(path: Path) -> Path:
    """A path made absolute, with `~` expanded."""
    return path.expanduser().absolute()


def now() -> float:
    """The time."""
    from folkmoot.clock import SystemClock

    return SystemClock.now()


PASSPHRASE = "FOLKMOOT_PASSPHRASE"  # noqa: S105 - the variable's name
NAMED = {
    "this": "this device's",
    "other": "another device's key: see 'folkmoot bridge key publish --help'",
    "none": "none: 'folkmoot bridge' publishes it",
    "unknown": "unknown: the hub does not answer",
}

ExportArgument = Annotated[Path, argument("FILE", "The file to write; it must not exist.")]
ImportArgument = Annotated[Path, argument("FILE", "A file that 'key export' wrote.")]
DescriptorOption = Annotated[
    int | None,
    number("--passphrase-fd", 0, 1000000, "Read the passphrase from this file descriptor."),
]
ReplaceOption = Annotated[bool, flag("--replace", "Replace another key.")]

app = group({}, "The key of this device.")


@app.command()
@device_command
def show(own: OwnDevice) -> Output:
    """Show the public key, its fingerprint and where it is kept.

    The fingerprint is what correspondents compare with what 'folkmoot bridge peers list' shows
    them. The private key is never shown.
    """
    from folkmoot.bridge.crypto import fingerprint

    keys = own.keys()
    kept = keys.entry.current
    told: dict[str, Any] = {
        "handle": own.login.handle,
        "hub": own.login.hub,
        "public_key": kept.public,
        "fingerprint": fingerprint(kept.public),
        "kept_in": "keyring" if kept.keyring else str(own.store.path),
        "made": kept.made,
        "earlier_keys": len(keys.entry.previous),
        "published": named_by_hub(own, kept.public),
    }
    rows = [
        ("Account", own.login.name),
        ("Fingerprint", told["fingerprint"]),
        ("Public key", told["public_key"]),
        ("Kept in", "the computer's keyring" if kept.keyring else told["kept_in"]),
        ("Made", moment(kept.made)),
        ("Earlier keys", str(told["earlier_keys"])),
        ("The hub names", NAMED[told["published"]]),
    ]
    return Output(told, *aligned(rows))


def named_by_hub(own: OwnDevice, public: str) -> str:
    """Whether the hub names this key as the account's own, in words."""
    try:
        named = own.published()
    except e.HubUnreachable:
        return "unknown"
    return "none" if not named else "this" if named == public else "other"


@app.command("export")
@device_command
def export_key(
    own: OwnDevice, file: ExportArgument, passphrase_fd: DescriptorOption = None
) -> Output:
    """Write the keys of an account into a file, under a passphrase.

    Anyone with the file and the passphrase can read your mail: keep them apart. The file also has
    the keys of correspondents that this device trusts.
    """
    from folkmoot.bridge.keys import check_passphrase, pack, put_new

    keys, path = own.keys(), absolute(file)
    if path.exists():
        raise e.DeviceKeyUnusable(f"{path}: already exists.")
    passphrase = asked_passphrase(passphrase_fd, twice=True)
    check_passphrase(passphrase)
    with ledger() as known:
        pins = known.pins(keys.current.public)
    put_new(path, pack(keys, pins, passphrase))
    return Output({"file": str(path)}, f"The keys of {own.login.name} are in {path}.")


@app.command("import")
@with_json_option
def import_key(
    file: ImportArgument,
    passphrase_fd: DescriptorOption = None,
    key_file: KeyFileOption = None,
    *,
    keyring: KeyringOption = False,
) -> Output:
    """Import the keys of an account from another device.

    The key in the file becomes this device's key. A previous key is kept to read old mail.
    """
    from folkmoot.bridge.crypto import fingerprint
    from folkmoot.bridge.keys import read_private, unpack

    path = absolute(file)
    content = read_private(path)
    if content is None:
        raise e.DeviceKeyUnusable(f"{path}: there is no such file.")
    brought = unpack(content, asked_passphrase(passphrase_fd, twice=False), str(path))
    keys = brought.opened()
    store = key_store(key_file)
    before = store.find(brought.hub, brought.handle)
    taken = store.adopt(brought.hub, brought.handle, keys, now(), keyring=keyring)
    owner = taken.current.public
    with ledger() as known:
        if before is not None and before.current.public != owner:
            known.hand_on(before.current.public, owner)
        differ = [pin.handle for pin in brought.pins if not known.recall(owner, pin)]
    digits = fingerprint(owner)
    told = {"handle": brought.handle, "hub": brought.hub, "fingerprint": digits, "differ": differ}
    return Output(
        told,
        f"The key of @{brought.handle} on {brought.hub} is here: {digits}.",
        *(Warned(f"@{peer}: the file trusts another key than this device.") for peer in differ),
    )


@app.command()
@device_command
def publish(own: OwnDevice, *, replace: ReplaceOption = False) -> Output:
    """Publish this device's key on the hub as yours.

    'folkmoot bridge' does this by itself if the hub names no key. If the hub names another device's
    key, --replace is needed: the other device can then no longer read new mail, and your
    correspondents are notified that your key has changed.
    """
    public, named = own.keys().current.public, own.published()
    told = {"public_key": public, "changed": named != public}
    if named == public:
        return Output(told, "The hub already names this device's key.")
    if named and not replace:
        raise e.DeviceKeyUnusable(
            "The hub names another device's key as yours. Import that key here with "
            "'folkmoot bridge key import', or use --replace."
        )
    own.publish(public)
    return Output(told, "The hub now names this device's key.")


@app.command()
@device_command
def rotate(own: OwnDevice, *, yes: YesOption = False) -> Output:
    """Replace this device's key, here and on the hub.

    The old key is kept to read old mail. Every correspondent is notified that your key has changed,
    and can write to you only after accepting the new one: tell them its fingerprint.
    """
    from folkmoot.bridge.crypto import DeviceKey, fingerprint

    keys = own.keys()
    if own.published() not in ("", keys.current.public):
        raise e.DeviceKeyUnusable("The hub names another device's key as yours: rotate it there.")
    confirm("Every correspondent must accept the new key. Continue?", yes=yes)
    entry, fresh = keys.entry, DeviceKey.fresh()
    own.store.rotate(entry.hub, entry.handle, fresh, now())
    with ledger() as known:
        known.hand_on(keys.current.public, fresh.public)
    try:
        own.publish(fresh.public)
    except e.FolkmootError as error:
        raise e.DeviceKeyUnusable(
            f"The new key is saved here, but not yet published on the hub: {error.message} "
            "'folkmoot bridge key publish --replace' tries again."
        ) from None
    digits = fingerprint(fresh.public)
    return Output({"public_key": fresh.public, "fingerprint": digits}, f"Your key is now {digits}.")


def asked_passphrase(descriptor: int | None, *, twice: bool) -> str:
    """The passphrase: never an argument, which every process could read."""
    if descriptor is not None:
        try:
            read = os.read(descriptor, 4096)
        except OSError:
            raise typer.BadParameter(f"file descriptor {descriptor} cannot be read") from None
        return read.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if (given := os.environ.get(PASSPHRASE)) is not None:
        return given
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter(
            f"there is no terminal to ask for a passphrase on; give --passphrase-fd or {PASSPHRASE}"
        )
    asked = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True)
    return str(asked)
