"""`folkmoot bridge peers`: the keys of correspondents that this device trusts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from folkmoot.cli.asking import AsOption, HandleArgument, UrlOption, YesOption, confirm
from folkmoot.cli.bridge_places import KeyFileOption, Own, ledger, now
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.options import JsonOption, option
from folkmoot.cli.output import say, say_json
from folkmoot.cli.show import Column, tell_table
from folkmoot.cli.text import moment
from folkmoot.core.errors import PeerKeyChanged

NONE = "none"

FingerprintOption = Annotated[
    str | None,
    option(
        "--fingerprint",
        "DIGITS",
        "Only if the key has this fingerprint; also marks it as verified.",
    ),
]

app = typer.Typer(help="The keys of your correspondents.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def peers(ctx: typer.Context) -> None:
    """The keys of your correspondents."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help(), err=True)
        raise typer.Exit(ExitCode.USAGE)


@app.command("list")
def list_peers(
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List whose keys are trusted here, and their earlier keys."""
    owner = Own(url, handle, key_file).keys().current.public
    with ledger() as known:
        pins = known.pins(owner)
    told: list[dict[str, Any]] = [
        {
            "handle": pin.handle,
            "fingerprint": shown(pin.key),
            "since": pin.since,
            "until": pin.until,
            "verified": pin.verified,
        }
        for pin in pins
    ]
    if as_json:
        say_json({"peers": told})
        return
    columns = (
        Column("Who", "bold"),
        Column("Fingerprint"),
        Column("Verified"),
        Column("Since", "dim"),
        Column("Until"),
    )
    rows = (
        (
            f"@{it['handle']}", it["fingerprint"], "verified" if it["verified"] else "-",
            moment(it["since"]), moment(it["until"]) if it["until"] else "",
        )
        for it in told
    )  # fmt: skip
    tell_table(columns, rows, "Nobody's key is trusted here yet.")


@app.command()
def accept(
    peer: HandleArgument,
    fingerprint: FingerprintOption = None,
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Trust the key that the hub has for someone now.

    If it has none, they count as having none from then on. Ask them first, but not through this
    hub: its operator could have replaced the key.
    """
    from folkmoot.bridge.crypto import check_public
    from folkmoot.bridge.identity import plain_handle

    own = Own(url, handle, key_file)
    owner = own.keys().current.public
    profile = own.hub.look_up(peer)
    current, offered = plain_handle(profile.handle), profile.client_public_key
    key = check_public(offered) if offered else ""
    if fingerprint is not None:
        check_fingerprint(fingerprint, key)
    with ledger() as known:
        pin = known.pin_of(owner, peer)
        before = shown(pin.key) if pin else "never met"
        if pin is None or pin.key != key:
            say(f"@{peer} was {before}", err=True)
            say(f"@{peer} is  {shown(key)}", err=True)
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
    say(f"@{peer} is trusted with {shown(key)}." if key else f"@{peer} is known to have no key.")


def check_fingerprint(given: str, key: str, differs: str = "The hub names another key") -> None:
    """Refuse another key than the one that was meant."""
    if "".join(given.split()).lower() != shown(key).replace(" ", ""):
        raise PeerKeyChanged(f"{differs} than the one with this fingerprint.")


@app.command()
def verify(
    peer: HandleArgument,
    fingerprint: FingerprintOption = None,
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Mark someone's key as verified, after you compared it with them.

    Ask them, by telephone or in person, what 'folkmoot bridge key show' prints on their computer.
    From then on their messages are marked as verified.
    """
    owner = Own(url, handle, key_file).keys().current.public
    with ledger() as known:
        pin = known.pin_of(owner, peer)
        if pin is None or not pin.key:
            raise PeerKeyChanged(f"No key of @{peer} is trusted here yet; write to them first.")
        if fingerprint is not None:
            check_fingerprint(fingerprint, pin.key, "The key trusted here for them is another")
        else:
            say(f"@{peer} is {shown(pin.key)}", err=True)
            confirm(f"Has @{peer} told you the same digits?", yes=yes)
        known.note_verified(owner, peer, pin.key)
    say(f"The key of @{peer} is verified.")


@app.command()
def forget(
    peer: HandleArgument,
    key_file: KeyFileOption = None,
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    yes: YesOption = False,
) -> None:
    """Forget someone's keys; the next key from the hub is trusted."""
    owner = Own(url, handle, key_file).keys().current.public
    confirm(f"The next key that the hub names for @{peer} will be trusted. Continue?", yes=yes)
    with ledger() as known:
        count = known.forget(owner, peer)
    say(f"@{peer} is forgotten." if count else f"No key of @{peer} was known.")


def shown(key: str) -> str:
    """A key's fingerprint, or that there is none."""
    from folkmoot.bridge.crypto import fingerprint as digits

    return digits(key) if key else NONE
