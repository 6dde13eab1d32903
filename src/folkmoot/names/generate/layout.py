"""Where things are in a project: its package, and the module that makes names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.plan import read_text
from folkmoot.names.lint.config import Found, find

NOT_PACKAGES = frozenset(
    {"tests", "test", "docs", "doc", "examples", "example", "scripts", "benchmarks", "migrations"}
    | {"build", "dist", "node_modules", "venv", "env", "tools", "site"}
)
HELPERS = ("names.py", "mcp_names.py", "mcp/__init__.py", "mcp/names.py", "mcp.py")
"""Where a helper module may be, below the package; a new one takes the first or second name."""
MADE = re.compile(r"^def make_tool_name\(", re.MULTILINE)
NAMESPACE = re.compile(r"""^NAMESPACE(?:\s*:[^=\n]+)?\s*=\s*["']([^"'\n]*)["']""", re.MULTILINE)


class Layout(NamedTuple):
    """A project on disk."""

    found: Found
    """What its `pyproject.toml` says."""
    package: Path | None
    """The folder of its package; None where modules lie in the root."""
    helper: Path | None
    """Its module that makes names, if it has one."""
    packages: tuple[Path, ...] = ()
    """Where a package was looked for, all that could be meant."""

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.found.root

    @property
    def name(self) -> str:
        """The name of the distribution; else that of the folder."""
        return self.found.name or self.root.resolve().name

    @property
    def module(self) -> str:
        """The helper's name for `import`."""
        if self.helper is None:
            return ""
        base = self.package.parent if self.package else self.root
        parts = self.helper.relative_to(base).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def shown(self, path: Path) -> str:
        """A path as people say it: within the project."""
        return (
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)
        )


def find_layout(path: Path, helper: Path | None = None) -> Layout:
    """The project at or above a path; `helper` is its helper module, if that is told.

    Raises `ProjectUnusable` where there is no such path.
    """
    if not path.exists():
        raise ProjectUnusable(f"{path}: there is no such folder.")
    found = find(path.absolute())
    if helper is not None:
        given = helper.absolute()
        return Layout(found, given.parent, given if is_helper(given) else None)
    packages = find_packages(found)
    for folder in [*packages, found.root]:
        known = find_helper(folder)
        if known is not None:
            return Layout(found, folder if folder != found.root else None, known)
    package = packages[0] if len(packages) == 1 else None
    return Layout(found, package, None, tuple(packages))


def find_packages(found: Found) -> list[Path]:
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
    return namespace_in(path) is not None


def namespace_in(path: Path) -> str | None:
    """The namespace that a helper module has; None for anything else."""
    text = read_text(path) if path.is_file() else None
    found = NAMESPACE.search(text) if text and MADE.search(text) else None
    return found[1] if found else None


def new_helper(layout: Layout) -> Path:
    """Where a new helper module goes: a name that hides nothing that is there."""
    if len(layout.packages) > 1:
        names = ", ".join(path.name for path in layout.packages[:5])
        raise ProjectUnusable(
            f"The project has several packages ({names}); say with --module where the helper goes."
        )
    folder = layout.package or layout.root
    for name in HELPERS[:2] if layout.package else HELPERS[1:2]:
        path = folder / name
        if not path.exists() and not path.with_suffix("").exists():
            return path
    raise ProjectUnusable(
        f"{layout.shown(folder)} has modules of these names already: {', '.join(HELPERS[:2])}; say "
        "with --module where the helper goes."
    )
