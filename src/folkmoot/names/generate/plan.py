"""A project on disk: where its modules are, and a plan of the files that will be written.

The files of a plan are looked at first, then written all together or not at all.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from folkmoot.core import errors as e
from folkmoot.names.limits import MAX_PROJECT_FILE_BYTES
from folkmoot.names.lint.project import FoundProject, find_config
from folkmoot.staging import stage

UNENDED = "\\ No newline at end of file"


class Change(NamedTuple):
    """One file before and after; None where it does not exist."""

    path: Path
    before: str | None
    after: str


class Plan:
    """Changes to the files below a folder; what was planned is what the next reader sees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._planned: dict[Path, Change] = {}

    def read(self, path: Path) -> str | None:
        """The text of a file as it will be; None where there is none."""
        path = Path(os.path.realpath(path))
        planned = self._planned.get(path)
        return planned.after if planned else read_text(path)

    def write(self, path: Path, text: str) -> None:
        """Plan the text of a file."""
        # Through a link to the file itself, which a whole new file would otherwise replace.
        path = Path(os.path.realpath(path))
        planned = self._planned.get(path)
        before = planned.before if planned else read_text(path)
        self._planned[path] = Change(path, before, text)

    @property
    def changes(self) -> list[Change]:
        """What will be different, by path."""
        return [it for _, it in sorted(self._planned.items()) if it.before != it.after]

    def shown(self, path: Path) -> str:
        """A path relative to the root, if it is inside."""
        real = Path(os.path.realpath(self.root))
        return path.relative_to(real).as_posix() if path.is_relative_to(real) else str(path)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of everything."""
        for path, before, after in self.changes:
            name = self.shown(path).lstrip("/")
            old = "/dev/null" if before is None else f"a/{name}"
            for line in difflib.unified_diff(lines(before or ""), lines(after), old, f"b/{name}"):
                yield line.removesuffix("\n").removesuffix("\r")
                if not line.endswith("\n"):
                    yield UNENDED

    def apply(self) -> None:
        """Write everything, or leave everything as it was. Raises `ProjectUnusable`."""
        staged: list[tuple[Change, Path]] = []
        done: list[Change] = []
        made: list[Path] = []
        try:
            for change in self.changes:
                make_folders(change.path.parent, made)
                part = stage(change.path, change.after.encode(), mode_of(change))
                staged.append((change, part))
            check_unchanged(staged)
            for change, part in staged:
                part.replace(change.path)
                done.append(change)
        except BaseException as error:
            undo(staged, done, made)
            if isinstance(error, OSError):
                where = error.filename or self.root
                why = (error.strerror or "unwritable").lower()
                raise e.ProjectUnusable(f"{where}: {why}; nothing was changed.") from error
            raise


def lines(text: str) -> list[str]:
    """Lines with their ends; only line feeds end one."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def read_text(path: Path) -> str | None:
    """The text of a file with its line ends as they are; None where there is no file."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_PROJECT_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise e.ProjectUnusable(f"{path}: {(error.strerror or 'unreadable').lower()}.") from error
    if len(raw) > MAX_PROJECT_FILE_BYTES:
        raise e.ProjectUnusable(f"{path}: it is larger than 4 MiB, so it is left alone.")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise e.ProjectUnusable(f"{path}: it is not UTF-8 text, so it was not changed.") from None


def make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and its parents; new ones are added to `made`."""
    for path in reversed([it for it in (folder, *folder.parents) if not it.exists()]):
        path.mkdir()
        made.append(path)


def mode_of(change: Change) -> int:
    """The permissions of a file: unchanged, or those of any new file."""
    if change.before is not None:
        return stat.S_IMODE(change.path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def check_unchanged(staged: list[tuple[Change, Path]]) -> None:
    """Refuse to undo what another program wrote meanwhile."""
    for change, _ in staged:
        if read_text(change.path) != change.before:
            raise e.ProjectUnusable(f"{change.path} was just changed by another program.")


def undo(staged: list[tuple[Change, Path]], done: list[Change], made: list[Path]) -> None:
    """Restore the files as far as the system allows."""
    for _, part in staged:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    for change in done:
        with suppress(OSError):
            if change.before is None:
                change.path.unlink()
            else:
                back = stage(change.path, change.before.encode(), mode_of(change))
                back.replace(change.path)
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def with_ends_of(before: str, after: str) -> str:
    """A text with the line endings of another."""
    plain = after.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in before else plain


NOT_PACKAGES = frozenset(
    {"tests", "test", "docs", "doc", "examples", "example", "scripts", "benchmarks", "migrations"}
    | {"build", "dist", "node_modules", "venv", "env", "tools", "site"}
)
HELPERS = ("names.py", "mcp_names.py", "mcp/__init__.py", "mcp/names.py", "mcp.py")
"""Where a helper module may be, below the package."""
MADE = re.compile(r"^def make_tool_name\(", re.MULTILINE)
NAMESPACE = re.compile(r"""^NAMESPACE(?:\s*:[^=\n]+)?\s*=\s*["']([^"'\n]*)["']""", re.MULTILINE)


class Layout(NamedTuple):
    """A project on disk."""

    found: FoundProject
    """What its `pyproject.toml` says."""
    helper: Path | None
    """Its module that makes names, if it has one."""

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.found.root

    def shown(self, path: Path) -> str:
        """A path as people say it: within the project."""
        return (
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)
        )


def find_layout(path: Path) -> Layout:
    """The project at or above a path.

    Raises `ProjectUnusable` where there is no such path.
    """
    if not path.exists():
        raise e.ProjectUnusable(f"{path}: there is no such folder.")
    found = find_config(path.absolute())
    helpers = map(find_helper, [*find_packages(found), found.root])
    return Layout(found, next(filter(None, helpers), None))


def find_packages(found: FoundProject) -> list[Path]:
    """The folder of the package: the one called as the project is, or all that it may be."""
    wanted = re.sub(r"[-.]+", "_", found.name).lower()
    for base in (found.root / "src", found.root):
        packages = list(packages_in(base))
        named = [path for path in packages if path.name.lower() == wanted]
        if packages:
            return named or packages
    return []


def packages_in(base: Path) -> Iterator[Path]:
    """The packages that lie in a folder."""
    if not base.is_dir():
        return
    for path in sorted(base.iterdir()):
        usual = path.name.isidentifier() and path.name not in NOT_PACKAGES
        if usual and (path / "__init__.py").is_file():
            yield path


def find_helper(folder: Path) -> Path | None:
    """The module that makes names, where it may be."""
    return next((path for name in HELPERS if is_helper(path := folder / name)), None)


def is_helper(path: Path) -> bool:
    """Whether a file is a module that has the namespace and makes names."""
    text = read_text(path) if path.is_file() else None
    return bool(text and MADE.search(text) and NAMESPACE.search(text))
