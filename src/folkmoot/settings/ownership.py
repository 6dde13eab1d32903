"""Who else could write a file: what others may write must not say what the hub runs."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

ROOT = 0
BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def refusal(path: Path, found: os.stat_result, *, owned: bool = True) -> str | None:
    """Why a file is not to be trusted, and what to do about it, in one line; None if it is.

    `found` is what was opened. Without `owned`, anyone may own it: then whoever names the file
    answers for that. What is no regular file, such as a pipe of the shell's, is not judged.
    """
    if not stat.S_ISREG(found.st_mode):
        return None
    if owned and found.st_uid not in (ROOT, os.geteuid()):
        return (
            f"belongs to {user(found.st_uid)}, who could make the hub run any program; run: "
            f"chown {os.geteuid()} {shlex.quote(str(path))}, or run the hub as that user"
        )
    if written_by_others(found) and not read_only(path):
        return f"can be written by others; run: chmod go-w {shlex.quote(str(path))}"
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        if (wrong := folder_refusal(folder, owned=owned)) is not None:
            return wrong
    return None


def folder_refusal(folder: Path, *, owned: bool) -> str | None:
    """Why someone else could put another file in the place of one in a folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    named = shlex.quote(str(folder))
    if owned and found.st_uid not in (ROOT, os.geteuid()):
        return (
            f"could be replaced by {user(found.st_uid)}, who owns its folder; "
            f"run: chown {os.geteuid()} {named}, or run the hub as that user"
        )
    # With the sticky bit, as in /tmp, nobody replaces what is another's.
    if written_by_others(found) and not found.st_mode & stat.S_ISVTX and not read_only(folder):
        return f"could be replaced by others, who may write in its folder; run: chmod go-w {named}"
    return None


def written_by_others(found: os.stat_result) -> bool:
    """Whether anyone but the owner, or a group that is the owner's alone, may write it."""
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not is_private(found.st_gid, found.st_uid)


def is_private(group_id: int, user_id: int) -> bool:
    """Whether a group is the private one of a user: of the same name, and with nobody else in it.

    Many systems give everyone such a group, and let it write what they make.
    """
    import grp
    import pwd

    try:
        owner = pwd.getpwuid(user_id)
    except KeyError:
        # Users of containers often have no name; their group has the same number then.
        return group_id == user_id
    try:
        group = grp.getgrgid(group_id)
    except KeyError:
        return group_id == owner.pw_gid == user_id
    alone = set(group.gr_mem) <= {owner.pw_name}
    return group_id == owner.pw_gid and group.gr_name == owner.pw_name and alone


def read_only(path: Path) -> bool:
    """Whether nobody here can write it, as where a container has it mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def user(user_id: int) -> str:
    """A user as people know them."""
    import pwd

    try:
        return f"user {pwd.getpwuid(user_id).pw_name}"
    except KeyError:
        return f"user {user_id}"
