"""`folkmoot serve`, `status` and `config`: run a hub, see whether it runs, and its settings."""

from __future__ import annotations

import json
import logging
import shlex
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import msgspec
import typer
from msgspec import Struct

from folkmoot import __version__
from folkmoot.cli.commands import Output, Table, Warned, group, with_json_option
from folkmoot.cli.operator import SocketHub, running
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    JsonOption,
    LogFormatOption,
    LogLevelOption,
    PortOption,
    argument,
    settings_from,
)
from folkmoot.cli.output import (
    ExitCode,
    aligned,
    duration,
    say,
    say_data,
    size,
)
from folkmoot.cli.show import Column, counted
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths
from folkmoot.settings import FIELDS
from folkmoot.settings.fields import in_effect

if TYPE_CHECKING:
    from folkmoot.settings import Loaded


FileArgument = Annotated[
    Path | None, argument("FILE", "The settings file.  [default: the one a hub would read]")
]

app = group({}, "Show and check the settings.")


@app.command()
@with_json_option
def show(config: ConfigOption = None, data: DataOption = None) -> Output:
    """Show every setting, its effective value and where it came from.

    Of backends, only values that differ from the default. Secrets are masked; references to them
    are shown.
    """
    loaded = settings_from(config, data=data)
    effect = list(in_effect(loaded))
    told = {path: {"value": value, "origin": origin} for path, value, origin in effect}
    rows = [(path, json.dumps(value, ensure_ascii=False), origin) for path, value, origin in effect]
    columns = (Column("Setting"), Column("Value", wide=True), Column("From", "dim"))
    return Output({"file": loaded.file, "settings": told}, Table(columns, rows, ""))


@app.command()
@with_json_option
def check(
    file: FileArgument = None,
    config: ConfigOption = None,
    data: DataOption = None,
) -> Output:
    """Check a settings file and report every problem.

    Also checks the environment, as a hub would read both. Each problem is reported with its line,
    and the exit code is 3.
    """
    if file and config:
        raise typer.BadParameter("give the file once: FILE or --config FILE")
    loaded = settings_from(str(file) if file else config, runs=True, data=data)
    count = sum(origin.startswith(f"{loaded.file}:") for origin in loaded.origins.values())
    backends = len(loaded.gateway.backends)
    held = counted(count, "setting") + (f" and {counted(backends, 'backend')}" if backends else "")
    notes = [f"{note}." for note in (*loaded.notes, *loaded.advice)]
    return Output(
        {"file": loaded.file, "settings": count, "backends": backends, "warnings": notes},
        "There is no settings file. The environment is valid."
        if loaded.file is None
        else f"{loaded.file} is valid: {held} in effect.",
        *map(Warned, notes),
    )


READY = 200
NAMES = {"mail": "Mail", "rooms": "Rooms", "memory_rooms": "Rooms in memory"}


def amount(used: int, limit: int) -> str:
    """How much of a quota is used."""
    return f"{size(used)} of {size(limit)}" if limit else size(used)


class HubCheck(Struct, frozen=True):
    """The outcome of one readiness check of a running hub."""

    ok: bool
    error: str = ""


class NodeAddress(Struct, frozen=True):
    """Where the other nodes look for a node, and whether it answers there."""

    url: str
    ok: bool | None


class HubReport(Struct, frozen=True):
    """Whether a hub is ready."""

    status: str
    checks: dict[str, HubCheck]
    address: NodeAddress | None = None

    @property
    def failure(self) -> str | None:
        """The code of what keeps the hub from being ready, if anything does."""
        return next((check.error for check in self.checks.values() if not check.ok), None)


def readiness(report: HubReport | None) -> list[tuple[str, str]]:
    """The lines of a hub that is not ready, and of a node that is not at its address."""
    if report is None:
        return []
    lines, address = [], report.address
    if report.failure is not None:
        why = "draining, or drained" if report.failure == e.NodeDraining.code else report.failure
        lines.append(("Ready", f"no: {why}"))
    if address is not None and address.ok is False:
        lines.append(("Address", f"{address.url}: does not answer (cluster.address)"))
    return lines


def hub_report(hub: SocketHub) -> HubReport | None:
    """What the running hub reports about its parts, if it does."""
    try:
        return msgspec.json.decode(hub.get("/health/ready")[1], type=HubReport)
    except (e.FolkmootError, msgspec.DecodeError):
        return None


def status(
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
    ready: Annotated[
        bool,
        typer.Option("--ready", help="Print what /health/ready reports to operators, as JSON."),
    ] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print the metrics that /metrics serves.")
    ] = False,
) -> None:
    """Show whether a hub is running, and where.

    Says so when the hub is not ready, such as a node that is drained. The exit code is 6 when none
    is running on the data folder; with --ready, 1 when it is not ready.
    """
    paths = Paths(settings_from(config, data=data).settings.data_folder)
    asked = running(paths)
    hub = asked.get_status()
    if ready:
        code, body = asked.get("/health/ready")
        say_data(msgspec.Raw(body))
        if code != READY:
            raise typer.Exit(ExitCode.FAILED)
        return
    if metrics:
        _, body = asked.get("/metrics")
        say(body.decode(errors="replace").rstrip())
        return
    if as_json:
        say_data(
            {
                "url": hub.url,
                "version": hub.version,
                "pid": hub.pid,
                "uptime": hub.uptime,
                "data": str(paths.folder),
                "quotas": hub.quotas,
            }
        )
        return
    rows = [
        ("Running at", hub.url),
        ("Version", hub.version),
        ("Process", str(hub.pid)),
        ("Up", duration(hub.uptime)),
        *readiness(hub_report(asked)),
        ("Data in", str(paths.folder)),
        *((NAMES.get(what, what), amount(use.used, use.limit)) for what, use in hub.quotas.items()),
    ]
    for line in aligned(rows):
        say(line)


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
    run_hub(loaded, lambda url, secret: say_if_read(welcome(url, loaded, secret)))
    say_if_read("Folkmoot has stopped.")


def say_if_read(text: str) -> None:
    """Say it if anyone listens: a hub does not end because its terminal did."""
    with suppress(OSError):
        say(text)


def page(url: str, name: str) -> str:
    """The URL of a page; 127.0.0.1 becomes localhost, which some browser features need."""
    return f"{url.rstrip('/')}/{name}".replace("http://127.0.0.1:", "http://localhost:", 1)


def welcome(url: str, loaded: Loaded, secret: str) -> str:
    """The text shown when a hub has started; `secret` sets up one that has no account yet."""
    here = reachable(url)
    rows = [("Listening on", url if here == url else f"{url} (all network interfaces)")]
    if loaded.settings.public_url:
        rows.append(("Reached at", loaded.settings.public_url))
    has_pages = not urlsplit(loaded.settings.public_url).path.strip("/")
    at = loaded.settings.public_url or here
    if has_pages and not secret:
        rows.append(("Inbox", page(at, "inbox")))
    rows.append(("Docs", page(at, "docs")))
    rows.append(("Data in", str(loaded.settings.data_folder)))
    if loaded.file:
        rows.append(("Settings in", loaded.file))
    if loaded.gateway.backends:
        rows.append(("Backends", ", ".join(sorted(loaded.gateway.backends))))
    connect = [
        "Paste this URL into your assistant, and sign in when it asks:",
        f"  {at.rstrip('/')}/mcp",
    ]
    parts = [
        f"Folkmoot {__version__}",
        indent("\n".join(aligned(rows)), "  "),
        *([f"Set up this hub: {page(at, f'set-up#{secret}')}"] if secret and has_pages else
          [*registration(loaded, first=bool(secret)), *connect]),
        "Press Ctrl-C to stop.",
    ]  # fmt: skip
    return "\n\n".join(parts)


def registration(loaded: Loaded, *, first: bool) -> list[str]:
    """How people get an account where not everyone may register."""
    policy = loaded.settings.registration_policy
    if policy == "open":
        return []
    where = folder_option(loaded)
    told = "Registration is by invitation" if policy == "invite" else "Registration is closed"
    invite = f"  folkmoot invite --for HANDLE{where}"
    if not first:
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
