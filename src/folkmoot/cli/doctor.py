"""`folkmoot doctor`: is everything as it must be, and what to do where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from folkmoot.cli.backends_checks import check_backends
from folkmoot.cli.checks import check_packages, check_program, check_sqlite, check_tls
from folkmoot.cli.datachecks import check_data
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.findings import tell
from folkmoot.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    JsonOption,
    PortOption,
    settings_from,
)
from folkmoot.cli.output import say_json
from folkmoot.cli.passingchecks import check_interceptors, check_recording
from folkmoot.core.errors import SettingsError
from folkmoot.datafolder import Finding

if TYPE_CHECKING:
    from folkmoot.settings import Loaded


def doctor(
    host: HostOption = None,
    port: PortOption = None,
    data: DataOption = None,
    config: ConfigOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check that a hub can run here, and say what to fix.

    Checks the program, the settings, the certificate, the folder for tapes, the rules, the servers
    behind the hub (without connecting to them), the data folder and its permissions, the master
    key, the database, the quotas, a running hub and the port. Changes nothing. A large database
    takes a while to read. The exit code is 1 when there is a problem.
    """
    findings = [check_program(), check_sqlite(), check_packages()]
    try:
        loaded = settings_from(config, runs=True, host=host, port=port, data=data)
    except SettingsError as error:
        findings += [
            Finding("settings", "problem", line, "Fix it; 'folkmoot config check' checks again.")
            for line in error.data["problems"]
        ]
    else:
        findings += [check_settings(loaded), check_tls(loaded.settings)]
        findings += [check_recording(loaded.settings), check_interceptors(loaded.settings)]
        findings += check_backends(loaded)
        findings.extend(check_data(loaded.settings))
    well = all(finding.level != "problem" for finding in findings)
    if as_json:
        say_json({"ok": well, "findings": findings})
    else:
        tell(findings)
    if not well:
        raise typer.Exit(ExitCode.FAILED)


def check_settings(loaded: Loaded) -> Finding:
    """Which file is read, and how many settings are not the default."""
    changed = sum(origin != "default" for origin in loaded.origins.values())
    file = loaded.file or "no settings file"
    how = f"{changed} changed from the default" if changed else "all defaults"
    return Finding("settings", "ok", f"{file}; {how}")
