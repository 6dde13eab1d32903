"""`folkmoot bridge`: end-to-end encrypted mail for MCP clients that know nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from folkmoot.cli import bridge_keys, bridge_peers
from folkmoot.cli.asking import AsOption, UrlOption
from folkmoot.cli.bridge_places import KeyFileOption, KeyringOption, key_path, ledger_path
from folkmoot.cli.credentials import read_keyring
from folkmoot.cli.looping import run_until_stopped, tell_waiting
from folkmoot.cli.options import check_place
from folkmoot.cli.output import complain

if TYPE_CHECKING:
    from folkmoot.bridge.serve import BridgeAccount, BridgeFiles

app = typer.Typer(rich_markup_mode=None)
app.add_typer(bridge_keys.app, name="key")
app.add_typer(bridge_peers.app, name="peers")


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

    login = read_keyring().find(url, handle)
    run(
        BridgeAccount(login.hub, login.handle, login.token),
        BridgeFiles(key_path(key_file), ledger_path(), keyring=keyring),
    )


def run(account: BridgeAccount, places: BridgeFiles) -> None:
    """Serve until the client leaves."""
    from folkmoot.bridge.serve import serve_bridge
    from folkmoot.coredumps import forbid_dumps

    forbid_dumps()

    def warn(message: str) -> None:
        complain(message, kind="warning")

    tell_waiting("'folkmoot connect' sets up a client for the hub itself")
    run_until_stopped(serve_bridge(account, places, warn))
