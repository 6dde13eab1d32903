"""`folkmoot doctor`: checks a hub's machine, settings, backends and interceptors."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from folkmoot import __version__
from folkmoot.cli.commands import Output, with_json_option
from folkmoot.cli.doctor_as import CLIENTS, Walk
from folkmoot.cli.doctor_data import check_data
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    PortOption,
    argument,
    choice,
    settings_from,
)
from folkmoot.cli.output import PROGRAM, console, on_terminal, say, size
from folkmoot.cli.show import counted, word
from folkmoot.core import errors as e
from folkmoot.datafolder import Finding, Paths
from folkmoot.settings.backends import SecretReference
from folkmoot.telemetry.redaction import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.core.ports import Tx, Unit
    from folkmoot.datafolder import Finding, Level
    from folkmoot.settings import BackendSpec, Loaded, Settings


STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def show_findings(findings: Sequence[Finding]) -> None:
    """Print the findings a line each, with advice where something is wrong, and a summary."""
    width = max(len(finding.subject) for finding in findings)
    if on_terminal():
        draw(findings)
    else:
        for finding in findings:
            say(f"{finding.level:<8} {finding.subject:<{width}}  {visible(finding.text)}")
            if finding.advice:
                say(f"{'':<8} {'':<{width}}  → {visible(finding.advice)}")
    say()
    say(verdict(findings))


def draw(findings: Sequence[Finding]) -> None:
    """The same on a terminal: coloured, and wrapped inside its column."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(visible(finding.text))
        if finding.advice:
            text.append(f"\n→ {visible(finding.advice)}", style="bold")
        mark = Text(finding.level, style=STYLES[finding.level])
        table.add_row(mark, Text(finding.subject), text)
    console().print(table)


def verdict(findings: Sequence[Finding]) -> str:
    """The summary of all findings in one line."""
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not problems and not warnings:
        return "No problems found."
    counts = [(problems, "problem"), (warnings, "warning")]
    told = [counted(count, noun) for count, noun in counts if count]
    return f"Found {' and '.join(told)}."


def check_recording(settings: Settings) -> Finding:
    """Whether tapes can be written where the settings want them, and how much room there is."""
    if not settings.record.wanted:
        return Finding("recording", "ok", "off")
    folder = Path(settings.record.folder).expanduser()
    # One that is not there yet is made at the start, with all that leads to it.
    there = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not there.is_dir():
        return Finding("recording", "problem", f"{there}: is not a folder", "Choose another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        advice = "Let the hub's user write there, or change record.folder."
        return Finding("recording", "problem", f"{there}: cannot be written to", advice)
    if there == folder and stat.S_IMODE(there.stat().st_mode) & 0o077:
        advice = f"Run: chmod 700 {folder}"
        return Finding("recording", "warning", f"{folder}: other users can read it", advice)
    free = size(shutil.disk_usage(there).free)
    return Finding("recording", "ok", f"{folder}: {free} free")


def check_interceptors(settings: Settings) -> Finding:
    """Whether the rules can be read, and the plugins loaded."""
    chosen = settings.interceptors
    if not chosen.rules and not chosen.plugins:
        return Finding("rules", "ok", "none")
    from folkmoot.clock import SystemClock
    from folkmoot.proxy.plugins import load_plugins
    from folkmoot.proxy.rules import Rules

    try:
        if chosen.rules:
            Rules.load(Path(chosen.rules).expanduser(), clock=SystemClock(), groups=lambda _: ())
        load_plugins(chosen.plugins)
    except e.FolkmootError as error:
        advice = "Fix it: a hub does not start with it, and a running one keeps the old rules."
        return Finding("rules", "problem", error.message.removesuffix("."), advice)
    return Finding("rules", "ok", ", ".join(filter(None, (chosen.rules, *chosen.plugins))))


T = TypeVar("T")

HELD = "SELECT COUNT(*) FROM pins WHERE changed_hash IS NOT NULL AND namespace = ?"


def check_backends(loaded: Loaded) -> Iterator[Finding]:
    """A finding for each backend with a problem, or the number of backends."""
    specs = [spec for spec in loaded.gateway.backends.values() if spec.enabled]
    hidden: tuple[str, ...] = ()
    if any(spec.sandbox != "none" for spec in specs):
        from folkmoot.relay.hub_gateway import secret_files

        hidden = (*secret_files(loaded.settings, loaded.gateway), *loaded.files)
    found = [finding for spec in specs for finding in check_backend(spec, hidden)]
    found += check_handles(loaded.settings, loaded.gateway.backends)
    found += check_held(loaded.settings, loaded.gateway.backends)
    found += [Finding("backends", "warning", note) for note in loaded.notes]
    told = counted(len(specs), "backend") if specs else "none"
    yield from found or [Finding("backends", "ok", told)]


def check_backend(spec: BackendSpec, hidden: Iterable[str] = ()) -> Iterator[Finding]:
    """Whether a backend could be reached as far as this machine is concerned."""
    for fault in secret_faults(spec):
        advice = "A hub that runs elsewhere or as another user may have it."
        yield Finding("backends", "warning", f"{spec.namespace}: {fault}", advice)
    if spec.cwd and not Path(spec.cwd).is_dir():
        advice = "Create the folder, or change cwd."
        yield Finding(
            "backends", "problem", f"{spec.namespace}: {spec.cwd}: no such folder", advice
        )
    elif spec.command and (wrong := isolation_fault(spec, hidden)):
        advice = f"Fix that, or change user or sandbox of [backends.{spec.namespace}]."
        yield Finding("backends", "problem", f"{spec.namespace}: {wrong}", advice)
    elif spec.command and not program_of(spec):
        told = f"{spec.namespace}: the program {spec.command[0]} is not found"
        advice = "Install it, or give its full path in command."
        yield Finding("backends", "problem", told, advice)


def secret_faults(spec: BackendSpec) -> Iterator[str]:
    """A sentence for each secret reference that cannot be resolved."""
    from folkmoot.relay.upstream.secrets import resolve

    for what, values in (("variable", spec.env), ("header", spec.headers)):
        for name, value in values.items():
            if isinstance(value, SecretReference):
                try:
                    resolve(value, os.environ, f"the {what} {name}")
                except e.FolkmootError as error:
                    yield error.message.rstrip(".")


def isolation_fault(spec: BackendSpec, hidden: Iterable[str] = ()) -> str:
    """Why a backend cannot run as another user or in its sandbox; empty when it can."""
    from folkmoot.relay.upstream.isolation import BWRAP, isolated

    if not spec.user and spec.sandbox != BWRAP:
        return ""
    try:
        start = isolated(spec, dict(os.environ), hidden)
    except e.FolkmootError as error:
        return error.message.rstrip(".")
    if spec.sandbox != BWRAP:
        return ""
    place = start.command.index("--", start.command.index("--chdir"))
    trying = [*start.command[:place], "--", "true"]
    try:
        ran = subprocess.run(trying, capture_output=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return "bwrap does not run here"
    return "" if ran.returncode == 0 else word(ran.stderr.decode(errors="replace").strip()[:200])


def program_of(spec: BackendSpec) -> str | None:
    """Where the program of a command is found; a path is taken from where it is started."""
    program = Path(spec.command[0])
    if len(program.parts) > 1:
        return shutil.which(Path(spec.cwd) / program)
    path = spec.env.get("PATH")
    return shutil.which(program.name, path=path if isinstance(path, str) else None)


def check_handles(settings: Settings, namespaces: Collection[str]) -> list[Finding]:
    """Whether someone has a backend's name: the hub would not start."""
    try:
        from folkmoot.storage import handles_among

        taken = handles_among(settings, namespaces)
    except e.FolkmootError:
        # What is wrong with the database is told where it is checked.
        return []
    advice = "Give it another namespace."
    return [
        Finding(
            "backends", "problem", f"{name}: is someone's handle, or was until recently", advice
        )
        for name in taken
    ]


def check_held(settings: Settings, namespaces: Collection[str]) -> list[Finding]:
    """How many tools wait to be accepted."""

    async def query(tx: Tx) -> list[tuple[str, int]]:
        rows = [(name, await tx.fetch_one(HELD, (name,))) for name in sorted(namespaces)]
        return [(name, row[0]) for name, row in rows if row is not None and row[0]]

    try:
        held = asked_of(settings, query)
    except e.FolkmootError:
        return []
    return [
        Finding(
            "backends",
            "warning",
            f"{namespace}: {counted(count, 'tool')} changed or new, held back until accepted",
            f"To see it: folkmoot backends diff {namespace}",
        )
        for namespace, count in held
    ]


def asked_of(settings: Settings, query: Unit[list[T]]) -> list[T]:
    """What a query answers on the database; nothing where there is none."""
    from folkmoot.storage import ask_once

    return ask_once(settings, Paths(settings.data_folder), query) or []


NAME = re.compile(r"[A-Za-z0-9._-]+")
REINSTALL = "Reinstall Folkmoot with its dependencies."


def check_program() -> Finding:
    """Which Folkmoot this is, on which Python."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return Finding("program", "ok", f"Folkmoot {__version__} on {python}")


def check_sqlite() -> Finding:
    """Which SQLite is used: the one `apsw` brings, not the system's."""
    try:
        from folkmoot.store import engine_version
    except ImportError as error:
        return Finding("sqlite", "problem", f"apsw cannot be loaded: {error}", REINSTALL)
    return Finding("sqlite", "ok", engine_version())


def check_packages() -> Finding:
    """Whether everything Folkmoot is built from is installed."""
    from importlib import metadata

    present, missing = [], []
    try:
        names = required()
    except metadata.PackageNotFoundError:
        return Finding("packages", "warning", "Folkmoot itself is not installed", REINSTALL)
    for name in names:
        try:
            present.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("packages", "problem", f"not installed: {', '.join(missing)}", REINSTALL)
    return Finding("packages", "ok", ", ".join(present))


def required() -> list[str]:
    """The names of the packages Folkmoot needs, those of extras left out."""
    from importlib.metadata import requires

    needs = [need for need in requires(PROGRAM) or [] if "extra ==" not in need]
    return [match.group() for need in needs if (match := NAME.match(need))]


def check_tls(settings: Settings) -> Finding:
    """Whether the port can be served with the certificate and the key that the settings name."""
    from folkmoot.transports.listen import load_tls

    try:
        context = load_tls(settings.tls)
    except e.SettingsError as error:
        advice = "Fix the file or the setting. Without both settings the hub uses no TLS."
        return Finding("tls", "problem", error.message.removesuffix("."), advice)
    if context is None:
        return Finding("tls", "ok", "off")
    return Finding("tls", "ok", f"{settings.tls.certificate}: matches its key")


ServerArgument = Annotated[
    str | None, argument("URL", "With --as: the MCP server, as the client is given it.")
]
ClientOption = Annotated[
    str | None,
    choice(
        "--as", "CLIENT", tuple(CLIENTS),
        "Walk the way by which this client signs in to URL: claude-code, codex, chatgpt or "
        "inspector.",
    ),
]  # fmt: skip


@with_json_option
def doctor(
    url: ServerArgument = None,
    client: ClientOption = None,
    host: HostOption = None,
    port: PortOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> Output:
    """Check that a hub can run here, and say what to fix.

    Checks the program, the settings, the certificate, the folder for tapes, the rules, the servers
    behind the hub (without connecting to them), the data folder and its permissions, the master
    key, the database, the bus between nodes, the quotas, a running hub and the port. Changes
    nothing. A large database takes a while to read. The exit code is 1 when there is a problem.

    With --as, checks instead whether an MCP client can sign in to a server, this hub or any other,
    and at which step it would fail. Nobody has to consent: it ends before the page where they
    would. It registers a client there if the real one would.
    """
    if url or client:
        if not (url and client) or host or port or data or config:
            raise typer.BadParameter("--as CLIENT goes with URL, and with --json alone")
        import asyncio

        return report(asyncio.run(Walk(CLIENTS[client], url).run()))
    findings = [check_program(), check_sqlite(), check_packages()]
    try:
        loaded = settings_from(config, runs=True, host=host, port=port, data=data)
    except e.SettingsError as error:
        findings += [
            Finding("settings", "problem", line, "Fix it; 'folkmoot config check' checks again.")
            for line in error.data["problems"]
        ]
    else:
        findings += [*check_settings(loaded), check_tls(loaded.settings)]
        findings += [check_recording(loaded.settings), check_interceptors(loaded.settings)]
        findings += check_backends(loaded)
        findings.extend(check_data(loaded.settings))
    return report(findings)


def report(findings: Sequence[Finding]) -> Output:
    """Show the findings; end with an error where one is a problem."""
    well = all(finding.level != "problem" for finding in findings)
    told = {"ok": well, "findings": findings}
    return Output(told, lambda: show_findings(findings), failed=not well)


def check_settings(loaded: Loaded) -> Iterator[Finding]:
    """Which file is read, how many settings are not the default, and what is unwise about them."""
    changed = sum(origin != "default" for origin in loaded.origins.values())
    file = loaded.file or "no settings file"
    how = f"{changed} changed from the default" if changed else "all defaults"
    yield Finding("settings", "ok", f"{file}; {how}")
    for note in loaded.advice:
        text, _, what_to_do = note.partition(". ")
        yield Finding("settings", "warning", text, f"{what_to_do}." if what_to_do else "")
