"""The doctor's checks of what the hub does with messages as they pass: recording and rules."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from folkmoot.cli.output import size
from folkmoot.core.errors import FolkmootError
from folkmoot.datafolder import Finding

if TYPE_CHECKING:
    from folkmoot.settings import Settings


def check_recording(settings: Settings) -> Finding:
    """Whether tapes can be written where the settings want them, and how much room there is."""
    if not settings.record.folder:
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
    except FolkmootError as error:
        advice = "Fix it: a hub does not start with it, and a running one keeps the old rules."
        return Finding("rules", "problem", error.message.removesuffix("."), advice)
    return Finding("rules", "ok", ", ".join(filter(None, (chosen.rules, *chosen.plugins))))
