"""`folkmoot bridge`: end-to-end encrypted mail for MCP clients, and the keys of peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from folkmoot.cli import bridge_keys
from folkmoot.cli.bridge_keys import (
    KeyFileOption,
    KeyringOption,
    OwnDevice,
    device_command,
    key_path,
    ledger,
    ledger_path,
    now,
)
from folkmoot.cli.commands import Output, Table, group
from folkmoot.cli.credentials import (
    AsOption,
    HandleArgument,
    UrlOption,
    YesOption,
    confirm,
    login_for,
)
from folkmoot.cli.options import check_place, option
from folkmoot.cli.output import (
    complain,
    explain_waiting,
    moment,
    run_until_stopped,
    say,
)
from folkmoot.cli.show import Column
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.bridge.serve import BridgeAccount, BridgeFiles


NONE = "none"

FingerprintOption = Annotated[
    str | None,
    option(
        "--fingerprint", "DIGITS",
        "Only if the key has this fingerprint; also marks it as verified.",
    ),
]  # fmt: skip

peers_app = group({}, "The keys of your correspondents.")


@peers_app.command("list")
@device_command
def list_peers(own: OwnDevice) -> Output:
    """List whose keys are trusted here, and their earlier keys."""
    with ledger() as known:
        pins = known.pins(own.keys().current.public)
    told: list[dict[str, Any]] = [
        {
            "handle": pin.handle,
            "fingerprint": fingerprint_of(pin.key),
            "since": pin.since,
            "until": pin.until,
            "verified": pin.verified,
        }
        for pin in pins
    ]
    columns = (
        Column("Who", "bold"), Column("Fingerprint"), Column("Verified"), Column("Since", "dim"),
        Column("Until"),
    )  # fmt: skip
    rows = (
        (
            f"@{it['handle']}", it["fingerprint"], "verified" if it["verified"] else "-",
            moment(it["since"]), moment(it["until"]) if it["until"] else "",
        )
        for it in told
    )  # fmt: skip
    return Output({"peers": told}, Table(columns, rows, "Nobody's key is trusted here yet."))


@peers_app.command()
@device_command
def accept(
    own: OwnDevice,
    peer: HandleArgument,
    fingerprint: FingerprintOption = None,
    *,
    yes: YesOption = False,
) -> Output:
    """Trust the key that the hub has for someone now.

    If it has none, they count as having none from then on. Ask them first, but not through this
    hub: its operator could have replaced the key.
    """
    from folkmoot.bridge.crypto import check_public
    from folkmoot.bridge.identity import plain_handle

    owner = own.keys().current.public
    profile = own.hub.look_up(peer)
    current, offered = plain_handle(profile.handle), profile.client_public_key
    key = check_public(offered) if offered else ""
    if fingerprint is not None:
        check_fingerprint(fingerprint, key)
    with ledger() as known:
        pin = known.pin_of(owner, peer)
        before = fingerprint_of(pin.key) if pin else "never met"
        if pin is None or pin.key != key:
            say(f"@{peer} was {before}", err=True)
            say(f"@{peer} is  {fingerprint_of(key)}", err=True)
            if fingerprint is None:
                confirm(f"Trust this for @{peer} from now on?", yes=yes)
            known.accept(owner, peer, key, now())
        if fingerprint is not None and key:
            known.note_verified(owner, peer, key)
        for other in known.pins(owner) if key else ():
            # Whoever has the key is who they are, whatever they are called now.
            if other.key == key and other.handle != peer:
                known.rename(owner, other.handle, peer)
        if key and current != peer:
            known.trust(owner, current, key, now())
            known.rename(owner, peer, current)
    digits = fingerprint_of(key)
    done = f"@{peer} is trusted with {digits}." if key else f"@{peer} is known to have no key."
    return Output({"handle": peer, "fingerprint": digits if key else None}, done)


def check_fingerprint(given: str, key: str, differs: str = "The hub names another key") -> None:
    """Refuse another key than the one that was meant."""
    if "".join(given.split()).lower() != fingerprint_of(key).replace(" ", ""):
        raise e.PeerKeyChanged(f"{differs} than the one with this fingerprint.")


@peers_app.command()
@device_command
def verify(
    own: OwnDevice,
    peer: HandleArgument,
    fingerprint: FingerprintOption = None,
    *,
    yes: YesOption = False,
) -> Output:
    """Mark someone's key as verified, after you compared it with them.

    Ask them, by telephone or in person, what 'folkmoot bridge key show' prints on their computer.
    From then on their messages are marked as verified.
    """
    owner = own.keys().current.public
    with ledger() as known:
        pin = known.pin_of(owner, peer)
        if pin is None or not pin.key:
            raise e.PeerKeyChanged(f"No key of @{peer} is trusted here yet; write to them first.")
        if fingerprint is not None:
            check_fingerprint(fingerprint, pin.key, "The key trusted here for them is another")
        else:
            say(f"@{peer} is {fingerprint_of(pin.key)}", err=True)
            confirm(f"Has @{peer} told you the same digits?", yes=yes)
        known.note_verified(owner, peer, pin.key)
    told = {"handle": peer, "fingerprint": fingerprint_of(pin.key)}
    return Output(told, f"The key of @{peer} is verified.")


@peers_app.command()
@device_command
def forget(own: OwnDevice, peer: HandleArgument, *, yes: YesOption = False) -> Output:
    """Forget someone's keys; the next key from the hub is trusted."""
    owner = own.keys().current.public
    confirm(f"The next key that the hub names for @{peer} will be trusted. Continue?", yes=yes)
    with ledger() as known:
        count = known.forget(owner, peer)
    done = f"@{peer} is forgotten." if count else f"No key of @{peer} was known."
    return Output({"handle": peer, "forgotten": bool(count)}, done)


def fingerprint_of(key: str) -> str:
    """A key's fingerprint, or that there is none."""
    from folkmoot.bridge.crypto import fingerprint as digits

    return digits(key) if key else NONE


app = typer.Typer(rich_markup_mode=None)
app.add_typer(bridge_keys.app, name="key")
app.add_typer(peers_app, name="peers")


@app.callback(invoke_without_command=True)
def bridge(
    ctx: typer.Context,
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    keyring: KeyringOption = False,
) -> None:
    """Encrypt mail end to end, for any MCP client.

    Without a command it runs as an MCP server on standard input and output, which the client starts
    instead of connecting to the hub. Mail to someone who has a key is encrypted before it leaves
    this computer, and mail that arrives is decrypted here. The hub sees neither the text nor the
    key. Each message says how it was protected.
    """
    if ctx.invoked_subcommand is not None:
        check_place(ctx, key_file, url, handle, keyring)
        return
    from folkmoot.bridge.serve import BridgeAccount, BridgeFiles
    from folkmoot.cli.login import LoginTokens

    login = login_for(url, handle)
    run(
        BridgeAccount(
            login.hub, login.handle, login.token, LoginTokens(login) if login.client_id else None
        ),
        BridgeFiles(key_path(key_file), ledger_path(), keyring=keyring),
    )


def run(account: BridgeAccount, places: BridgeFiles) -> None:
    """Serve until the client leaves."""
    from folkmoot.bridge.serve import serve_bridge
    from folkmoot.keys import forbid_dumps

    forbid_dumps()

    def warn(message: str) -> None:
        complain(message, kind="warning")

    explain_waiting("'folkmoot connect' sets up a client for the hub itself")
    run_until_stopped(serve_bridge(account, places, warn))
