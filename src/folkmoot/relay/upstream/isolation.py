"""Isolation: how a server's command is started as another user, or in a sandbox.

A backend is a stranger's program. As the hub's own user it can read the hub's key and database; as
another user, or in a sandbox of bubblewrap, it cannot.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.settings.backends import BackendSpec

BWRAP: Final = "bwrap"
SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
)
"""The folders of the system that a sandbox shows."""
SYSTEM_FILES: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""What a sandbox shows of `/etc`: where a hub is root, the rest holds passwords and keys."""
HOME: Final = "/tmp"  # noqa: S108 - the sandbox's own
OF_THE_HUB: Final = ("HOME", "LOGNAME", "SHELL", "TEMP", "TMP", "TMPDIR", "USER")
AS_USER: Final = """
import os, pwd, sys
name, folder, command = sys.argv[1], sys.argv[2], sys.argv[3:]
who = pwd.getpwnam(name)
os.initgroups(name, who.pw_gid)
os.setgid(who.pw_gid)
os.setuid(who.pw_uid)
try:
    os.chdir(folder)
    os.execvp(command[0], command)
except OSError as error:
    sys.exit("%s: %s, as user %s" % (error.filename or command[0], error.strerror, name))
"""
"""Becomes a user with all its groups, and then the command."""


class StartCommand(NamedTuple):
    """A process to start: its command, whole environment, and folder."""

    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None


def isolated(spec: BackendSpec, env: dict[str, str], hidden: Iterable[str]) -> StartCommand:
    """How to start a server; `hidden` are paths of the hub's that no sandbox shows.

    Raises `ServerUnreachable` where it cannot be isolated as its settings want.
    """
    start = StartCommand(spec.command, env, spec.cwd or None)
    if spec.sandbox == BWRAP:
        start = sandboxed(start, spec, hidden)
    return as_user(start, spec) if spec.user else start


def as_user(start: StartCommand, spec: BackendSpec) -> StartCommand:
    """The command, changed to run as the user that the settings name."""
    try:
        who = pwd.getpwnam(spec.user)
    except KeyError:
        raise e.ServerUnreachable(f"The user {spec.user} does not exist.") from None
    if who.pw_uid == os.geteuid():
        return start
    if os.geteuid() != 0:
        raise e.ServerUnreachable(
            f"It cannot be run as {spec.user}: only a hub that runs as root can start a program "
            "as another user."
        )
    env = start.env
    if spec.sandbox != BWRAP:
        own = {"HOME": who.pw_dir, "USER": who.pw_name, "LOGNAME": who.pw_name}
        env = without_hub(env) | own | named_in(env, spec)
    folder = start.cwd or (who.pw_dir if Path(who.pw_dir).is_dir() else "/")
    command = (sys.executable, "-I", "-S", "-c", AS_USER, spec.user, folder, *start.command)
    return StartCommand(command, env, None)


def without_hub(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without the folders of the hub's own user."""
    return {
        name: value
        for name, value in env.items()
        if name not in OF_THE_HUB and not name.startswith("XDG_")
    }


def named_in(env: Mapping[str, str], spec: BackendSpec) -> dict[str, str]:
    """The variables that the settings of a server name."""
    return {name: env[name] for name in spec.env if name in env}


class Shown(NamedTuple):
    """A folder or file that a sandbox shows: where, and what it is."""

    at: Path
    real: Path


def sandboxed(start: StartCommand, spec: BackendSpec, hidden: Iterable[str]) -> StartCommand:
    """Start it in a sandbox of bubblewrap."""
    bwrap = shutil.which(BWRAP)
    if bwrap is None:
        raise e.ServerUnreachable(
            "Its sandbox needs bubblewrap, and the program bwrap is not found; install it, for "
            "example with: apt install bubblewrap"
        )
    env = without_hub(start.env) | {"HOME": HOME, "TMPDIR": HOME} | named_in(start.env, spec)
    arguments = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    if spec.network:
        arguments += ["--share-net", "--ro-bind-try", *["/run/systemd/resolve"] * 2]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    shown, links = [], []
    for each in (*SYSTEM, *SYSTEM_FILES):
        place = Path(each)
        if place.is_symlink() and each in SYSTEM:
            arguments += ["--symlink", str(place.readlink()), each]
            links.append(Shown(place, place.resolve()))
        elif place.exists():
            arguments += ["--ro-bind", each, each]
            shown.append(Shown(place, place.resolve()))
    secret = [Path(each).expanduser().resolve() for each in hidden]
    folders = ((start.cwd,) if start.cwd else ()) + spec.folders
    for how, wanted in (("--ro-bind", folders), ("--bind", spec.writable_folders)):
        for each in wanted:
            shown.append(chosen(each, secret))
            arguments += [how, str(shown[-1].real), each]
    for path in secret:
        arguments += masked(path, shown)
    check_visible(start.command[0], env, start.cwd or "/", shown + links)
    arguments += ["--chdir", start.cwd or HOME, "--"]
    return StartCommand((*arguments, *start.command), env, None)


def chosen(folder: str, secret: Sequence[Path]) -> Shown:
    """A folder that the settings have shown in the sandbox."""
    real = Path(folder).resolve()
    if not real.exists():
        raise e.ServerUnreachable(f"Its sandbox cannot show {folder}: there is no such folder.")
    if any(real.is_relative_to(each) for each in secret):
        raise e.ServerUnreachable(
            f"Its sandbox cannot show {folder}: the hub's own files are there."
        )
    return Shown(Path(folder), real)


def masked(path: Path, shown: Iterable[Shown]) -> list[str]:
    """What hides a folder wherever a sandbox would show it; a file there is refused.

    A file could only be hidden until it is replaced: the new one would be seen.
    """
    arguments: list[str] = []
    for each in shown:
        if path.is_relative_to(each.real):
            if not path.is_dir():
                raise e.ServerUnreachable(
                    f"Its sandbox cannot show {each.at}: the hub's own file {path} is there. Show "
                    "a smaller folder, or move the file."
                )
            arguments += ["--tmpfs", str(each.at / path.relative_to(each.real))]
    return arguments


def check_visible(program: str, env: Mapping[str, str], cwd: str, shown: Sequence[Shown]) -> None:
    """Refuse a program that the sandbox does not show, with what to do about it."""
    if "/" in program:
        found = Path(cwd) / program
    else:
        which = shutil.which(program, path=env.get("PATH"))
        if which is None:
            raise e.ServerUnreachable(f"{program} cannot be started: it was not found.")
        found = Path(which)
    for path in (found.absolute(), found.resolve()):
        if not any(path.is_relative_to(place) for each in shown for place in each):
            raise e.ServerUnreachable(
                f"{program} cannot be started: its sandbox does not show {path}; add the folder "
                "it needs to folders."
            )
