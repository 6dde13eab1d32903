"""`folkmoot bridge key`: the key of this device, shown, taken elsewhere and changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from folkmoot.cli.asking import AsOption, UrlOption, YesOption, confirm
from folkmoot.cli.bridge_places import (
    KeyFileOption,
    KeyringOption,
    Own,
    absolute,
    key_store,
    ledger,
    now,
)
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import JsonOption, number
from folkmoot.cli.output import aligned, complain, say, say_json
from folkmoot.cli.text import moment
from folkmoot.core.errors import DeviceKeyUnusable, FolkmootError, HubUnreachable

PASSPHRASE = "FOLKMOOT_PASSPHRASE"  # noqa: S105 - the variable's name
LONGEST = 4096
NAMED = {
    "this": "this device's",
    "other": "another device's: see 'folkmoot bridge key publish --help'",
    "none": "none: 'folkmoot bridge' publishes it",
    "unknown": "not known: no hub answers",
}

ExportArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")
]
ImportArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file that 'key export' wrote.")
]
DescriptorOption = Annotated[
    int | None,
    number("--passphrase-fd", 0, 1_000_000, "Read the passphrase from this file descriptor."),
]
ReplaceOption = Annotated[
    bool,
    typer.Option("--replace", help="Put it in another key's place.", show_default=False),
]

app = typer.Typer(help="The key of this device.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def key(ctx: typer.Context) -> None:
    """The key of this device."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def show(
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the public key, its fingerprint and where it is kept.

    The fingerprint is what correspondents compare with what 'folkmoot bridge peers list' shows
    them. The private key is never shown.
    """
    from folkmoot.bridge.boxes import fingerprint

    own = Own(url, handle, key_file)
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
    if as_json:
        say_json(told)
        return
    rows = [
        ("Account", own.login.name),
        ("Fingerprint", told["fingerprint"]),
        ("Public key", told["public_key"]),
        ("Kept in", "the computer's keyring" if kept.keyring else told["kept_in"]),
        ("Made", moment(kept.made)),
        ("Earlier keys", str(told["earlier_keys"])),
        ("The hub names", NAMED[told["published"]]),
    ]
    for line in aligned(rows):
        say(line)


def named_by_hub(own: Own, public: str) -> str:
    """Whose key the hub names as the account's."""
    try:
        named = own.published()
    except HubUnreachable:
        return "unknown"
    return "none" if not named else "this" if named == public else "other"


@app.command("export")
def export_key(
    file: ExportArgument,
    passphrase_fd: DescriptorOption = None,
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
) -> None:
    """Write the keys of an account into a file, under a passphrase.

    With the file and the passphrase another device is yours as this one is: keep them apart. The
    keys of correspondents that this device trusts are in it too.
    """
    from folkmoot.bridge.files import put_new
    from folkmoot.bridge.transfer import check_passphrase, pack

    own = Own(url, handle, key_file)
    keys, path = own.keys(), absolute(file)
    if path.exists():
        raise DeviceKeyUnusable(f"{path}: exists already.")
    passphrase = asked_passphrase(passphrase_fd, twice=True)
    check_passphrase(passphrase)
    with ledger() as known:
        pins = known.pins(keys.current.public)
    put_new(path, pack(keys, pins, passphrase))
    say(f"The keys of {own.login.name} are in {path}.")


@app.command("import")
def import_key(
    file: ImportArgument,
    passphrase_fd: DescriptorOption = None,
    key_file: KeyFileOption = None,
    *,
    keyring: KeyringOption = False,
) -> None:
    """Bring the keys of an account from another device.

    The key in the file becomes this device's; one that was here before is kept to read old mail.
    """
    from folkmoot.bridge.boxes import fingerprint
    from folkmoot.bridge.files import read_private
    from folkmoot.bridge.transfer import unpack

    path = absolute(file)
    content = read_private(path)
    if content is None:
        raise DeviceKeyUnusable(f"{path}: there is no such file.")
    brought = unpack(content, asked_passphrase(passphrase_fd, twice=False), str(path))
    keys = brought.opened()
    store = key_store(key_file)
    before = store.find(brought.hub, brought.handle)
    taken = store.take(brought.hub, brought.handle, keys, now(), keyring=keyring)
    owner = taken.current.public
    with ledger() as known:
        if before is not None and before.current.public != owner:
            known.hand_on(before.current.public, owner)
        differ = [pin.handle for pin in brought.pins if not known.recall(owner, pin)]
    say(f"The key of @{brought.handle} on {brought.hub} is here: {fingerprint(owner)}.")
    for peer in differ:
        complain(f"@{peer}: the file trusts another key than this device.", kind="warning")


@app.command()
def publish(
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    replace: ReplaceOption = False,
) -> None:
    """Have the hub name this device's key as yours.

    'folkmoot bridge' does this by itself where the hub names none. Where it names another device's,
    only --replace puts this one in its place: from then on the other device cannot read new mail,
    and your correspondents are told that your key has changed.
    """
    own = Own(url, handle, key_file)
    public, named = own.keys().current.public, own.published()
    if named == public:
        say("The hub names this device's key already.")
        return
    if named and not replace:
        raise DeviceKeyUnusable(
            "The hub names another device's key as yours. Bring that key here with 'folkmoot "
            "bridge key import', or say --replace."
        )
    own.publish(public)
    say("The hub names this device's key now.")


@app.command()
def rotate(
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Put a fresh key in place of this device's, here and on the hub.

    The old one is kept to read old mail. Every correspondent is told that your key has changed,
    and can write to you only after accepting the new one: tell them its fingerprint.
    """
    from folkmoot.bridge.boxes import DeviceKey, fingerprint

    own = Own(url, handle, key_file)
    keys = own.keys()
    if own.published() not in ("", keys.current.public):
        raise DeviceKeyUnusable("The hub names another device's key as yours: rotate it there.")
    confirm("Every correspondent must accept the new key. Go on?", yes=yes)
    entry, fresh = keys.entry, DeviceKey.fresh()
    own.store.rotate(entry.hub, entry.handle, fresh, now())
    with ledger() as known:
        known.hand_on(keys.current.public, fresh.public)
    try:
        own.publish(fresh.public)
    except FolkmootError as error:
        raise DeviceKeyUnusable(
            f"The new key is here, but not yet on the hub: {error.message} "
            "'folkmoot bridge key publish --replace' tries again."
        ) from None
    say(f"Your key is {fingerprint(fresh.public)} now.")


def asked_passphrase(descriptor: int | None, *, twice: bool) -> str:
    """The passphrase: never an argument, which every process could read."""
    if descriptor is not None:
        try:
            read = os.read(descriptor, LONGEST)
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
