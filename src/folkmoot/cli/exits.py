"""Exit codes: what a script may rely on, and which error ends with which."""

from __future__ import annotations

from enum import IntEnum

from folkmoot.core.errors import (
    BackupFailed,
    DataFolderError,
    FolkmootError,
    HubNotRunning,
    HubUnreachable,
    NotSignedIn,
    RestoreFailed,
    ServeError,
    SettingsError,
    SettingsUnwritable,
    StoreError,
)


class ExitCode(IntEnum):
    """How the `folkmoot` command ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SETTINGS = 3
    DATA = 4
    LISTEN = 5
    NOT_RUNNING = 6
    UNREACHABLE = 7
    SIGNED_OUT = 8
    UNEXPECTED = 70
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: (
        "Success; or a command that runs until it is stopped was stopped, and "
        "everything is written."
    ),
    ExitCode.FAILED: (
        "The command failed, or found something: `doctor` a problem, `tape diff` and `tape play` "
        "a difference, `tape serve --strict` a mismatch, `names lint` an error."
    ),
    ExitCode.USAGE: "The command line is wrong: an unknown command or option, or a wrong value.",
    ExitCode.SETTINGS: (
        "The settings file or a `FOLKMOOT_…` variable is not valid, or the file cannot be changed."
    ),
    ExitCode.DATA: (
        "The data folder, the database, the master key or a key for redaction cannot be used."
    ),
    ExitCode.LISTEN: (
        "A hub, a proxy or a served tape cannot listen: the port is taken or the address is not "
        "usable."
    ),
    ExitCode.NOT_RUNNING: ("The command needs a running hub (or proxy), and none is running."),
    ExitCode.UNREACHABLE: ("No hub answers at the address (for `names lint`: no server)."),
    ExitCode.SIGNED_OUT: "The command needs an account: none is saved, or its token is not valid.",
    ExitCode.UNEXPECTED: "Unexpected error; `FOLKMOOT_DEBUG=1` shows the traceback.",
    ExitCode.INTERRUPTED: (
        "Interrupted with Ctrl-C. Commands that run until then (`serve`, `proxy`, "
        "`tape serve`, the view of `room join`) exit with 0 instead."
    ),
}

ENDS: dict[type[FolkmootError], ExitCode] = {
    SettingsError: ExitCode.SETTINGS,
    SettingsUnwritable: ExitCode.SETTINGS,
    DataFolderError: ExitCode.DATA,
    StoreError: ExitCode.DATA,
    BackupFailed: ExitCode.FAILED,
    RestoreFailed: ExitCode.FAILED,
    ServeError: ExitCode.LISTEN,
    HubNotRunning: ExitCode.NOT_RUNNING,
    HubUnreachable: ExitCode.UNREACHABLE,
    NotSignedIn: ExitCode.SIGNED_OUT,
    FolkmootError: ExitCode.FAILED,
}


def exit_code(error: FolkmootError) -> ExitCode:
    """The code of the nearest class of the error that has one."""
    return next(ENDS[cls] for cls in type(error).__mro__ if cls in ENDS)
