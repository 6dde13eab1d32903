"""Where the module that makes names is in a project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.plan import read_text
from folkmoot.names.lint.project import FoundProject, find_config

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
        raise ProjectUnusable(f"{path}: there is no such folder.")
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
