"""The doctor's checks of the machine and the program; none changes anything."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from typing import TYPE_CHECKING

from folkmoot import __version__
from folkmoot.cli.output import PROGRAM
from folkmoot.core.errors import ServeError, SettingsError
from folkmoot.datafolder import Finding

if TYPE_CHECKING:
    from folkmoot.settings import Settings

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
    needs = [need for need in metadata.requires(PROGRAM) or [] if "extra ==" not in need]
    return [match.group() for need in needs if (match := NAME.match(need))]


def check_tls(settings: Settings) -> Finding:
    """Whether the port can be served with the certificate and the key that the settings name."""
    from folkmoot.transports.tls import load_tls

    try:
        context = load_tls(settings.tls)
    except SettingsError as error:
        advice = "Fix the file or the setting. Without both settings the hub uses no TLS."
        return Finding("tls", "problem", error.message.removesuffix("."), advice)
    if context is None:
        return Finding("tls", "ok", "off")
    return Finding("tls", "ok", f"{settings.tls.certificate}: matches its key")


def check_port(settings: Settings) -> Finding:
    """Whether a hub could listen where it is told to."""
    from folkmoot.transports.listen import close, listen

    if settings.port == 0:
        where = f"any free port on {settings.host}"
    else:
        where = f"{settings.port} on {settings.host}: free"
    try:
        close(listen(settings.host, settings.port))
    except ServeError as error:
        told, dot, advice = error.message.partition(". ")
        return Finding("port", "problem", told + dot.strip(), advice)
    return Finding("port", "ok", where)
