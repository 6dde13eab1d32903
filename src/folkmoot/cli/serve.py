"""`folkmoot serve`: run the hub until it is told to stop."""

from __future__ import annotations

import json
import logging
import shlex
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from folkmoot import __version__
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    LogFormatOption,
    LogLevelOption,
    PortOption,
    settings_from,
)
from folkmoot.cli.output import aligned, say
from folkmoot.settings import FIELDS

if TYPE_CHECKING:
    from folkmoot.settings import Loaded

logger = logging.getLogger("folkmoot.settings")

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104
"""Addresses that mean every network, and what this machine reaches them at."""


def serve(
    host: HostOption = None,
    port: PortOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """Run the hub until Ctrl-C.

    Prints where it listens, where its data is, and what to paste into an MCP client. On Ctrl-C or
    SIGTERM it finishes requests in progress, writes everything and exits with 0; a second one does
    not wait.
    """
    loaded = settings_from(
        config,
        runs=True,
        host=host,
        port=port,
        data=data,
        log_level=log_level,
        log_format=log_format,
    )
    # The hub and its server take most of a second to import; help and errors do not wait for them.
    from folkmoot.app import serve as run_hub
    from folkmoot.keys import KEY_VARIABLE, parse_key
    from folkmoot.telemetry import logs

    if loaded.settings.master_key:
        # A key that is none must not leave a fresh data folder behind.
        parse_key(loaded.settings.master_key, KEY_VARIABLE)
    logs.configure(loaded.settings.log.level, loaded.settings.log.format)
    for note in (*loaded.notes, *loaded.advice):
        logger.warning("%s", note)
    run_hub(loaded, lambda url, accounts: tell(welcome(url, loaded, accounts)))
    tell("Folkmoot has stopped.")


def tell(text: str) -> None:
    """Say it if anyone listens: a hub does not end because its terminal did."""
    with suppress(OSError):
        say(text)


def page(url: str, name: str) -> str:
    """A page to open; by its host's name, as some things that browsers do need one."""
    return f"{url.rstrip('/')}/{name}".replace("http://127.0.0.1:", "http://localhost:", 1)


def welcome(url: str, loaded: Loaded, accounts: int) -> str:
    """What someone who just started a hub wants to know."""
    here = reachable(url)
    rows = [("Listening on", url if here == url else f"{url} (all network interfaces)")]
    if loaded.settings.public_url:
        rows.append(("Reached at", loaded.settings.public_url))
    if not urlsplit(loaded.settings.public_url).path.strip("/"):
        rows.append(("Inbox", page(loaded.settings.public_url or here, "inbox")))
    rows.append(("Docs", page(loaded.settings.public_url or here, "docs")))
    rows.append(("Data in", str(loaded.settings.data_folder)))
    if loaded.file:
        rows.append(("Settings in", loaded.file))
    if loaded.gateway.backends:
        rows.append(("Backends", ", ".join(sorted(loaded.gateway.backends))))
    parts = [
        f"Folkmoot {__version__}",
        indent("\n".join(aligned(rows)), "  "),
        *registration(loaded, accounts),
        "Paste this into the settings of an MCP client:",
        indent(snippet(loaded.settings.public_url or here), "  "),
        "Press Ctrl-C to stop.",
    ]
    return "\n\n".join(parts)


def registration(loaded: Loaded, accounts: int) -> list[str]:
    """How people get an account where not everyone may register."""
    policy = loaded.settings.registration_policy
    if policy == "open":
        return []
    where = folder_option(loaded)
    told = "Registration is by invitation" if policy == "invite" else "Registration is closed"
    invite = f"  folkmoot invite --for HANDLE{where}"
    if accounts:
        return [f"{told}. Invite someone with:", invite]
    add = f"  folkmoot people add HANDLE{where}"
    return [f"{told}. Make your own account, then invite others:", f"{add}\n{invite}"]


def folder_option(loaded: Loaded) -> str:
    """What another command must be told to find this hub's data folder."""
    folder = loaded.settings.data_folder
    usual = Path(FIELDS["data"].default).absolute()
    return "" if folder == usual else f" --data {shlex.quote(str(folder))}"


def reachable(url: str) -> str:
    """The URL with an address this machine can connect to in place of "every network"."""
    parts = urlsplit(url)
    host = EVERYWHERE.get(parts.hostname or "")
    return url if host is None else parts._replace(netloc=f"{host}:{parts.port}").geturl()


def snippet(url: str) -> str:
    """The entry for an MCP client."""
    return json.dumps({"mcpServers": {"folkmoot": {"url": f"{url.rstrip('/')}/mcp"}}}, indent=2)
