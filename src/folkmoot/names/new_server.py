"""Makes a new MCP server: small, complete, and true to the conventions.

The texts of its files are templates, with `$name` where a project's own words belong.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Literal, NamedTuple, TypeAlias

from folkmoot.core import errors as e
from folkmoot.names import namespaces_md
from folkmoot.names.canonical import check_free_namespace, make_tool_name
from folkmoot.names.limits import MAX_SERVER_NAME
from folkmoot.names.nearest import namespace_from_slug
from folkmoot.names.project import NAMED, Declared, Kind, Project

FOLDER = Path(__file__).with_name("templates")
SUFFIX = ".in"


def fill_folder(name: str, words: Mapping[str, str]) -> dict[str, str]:
    """Every file of a folder by its path in it; a folder `package` is called as the package is."""
    base = FOLDER / name
    found = {}
    for path in sorted(base.rglob(f"*{SUFFIX}")):
        place = path.relative_to(base).as_posix().removesuffix(SUFFIX)
        filled = Template(path.read_text(encoding="utf-8")).substitute(words)
        found[place.replace("src/package/", f"src/{words['package']}/")] = filled
    return found


Sdk: TypeAlias = Literal["mcp", "fastmcp"]
SDKS: dict[Sdk, str] = {"mcp": "mcp>=2.3,<3", "fastmcp": "fastmcp>=4,<5"}
"""What a server can be made with, and the version it then needs."""
SLUG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
HIDING = frozenset(sys.stdlib_module_names | {"mcp", "mcp_types", "fastmcp", "folkmoot", "pytest"})
"""Modules that a package of the same name would hide."""
VERSION = "0.1.0"

OFFERED: tuple[tuple[Kind, str, str, str], ...] = (
    ("tool", "create_task", "Create a task.", ""),
    ("tool", "list_tasks", "List the tasks: all of them, or only those that are done or open.", ""),
    ("tool", "complete_task", "Mark a task as done.", ""),
    ("tool", "delete_task", "Take a task off the list.", ""),
    ("resource", "reports/open-tasks.md", "The open tasks as a list.", "text/markdown"),
    ("template", "tasks/{task_id}", "One task.", "application/json"),
    ("prompt", "plan_day", "Plan a day around the open tasks.", ""),
)
"""What the new server offers, for its register."""


class Wanted(NamedTuple):
    """The server that is asked for, its words checked."""

    name: str
    namespace: str
    package: str
    sdk: Sdk

    @property
    def title(self) -> str:
        """The name as a heading has it."""
        return self.name.replace("-", " ").capitalize()


def check_server(name: str, namespace: str | None, sdk: Sdk) -> Wanted:
    """What is asked for. Raises `ProjectUnusable` or `InvalidName` for what cannot be made."""
    if not SLUG.fullmatch(name) or len(name) > MAX_SERVER_NAME:
        raise e.ProjectUnusable(
            f"{name!r} is no name for a server: it needs lower-case letters and digits, joined by "
            "single hyphens, such as my-server."
        )
    package = name.replace("-", "_")
    if package in HIDING or keyword.iskeyword(package):
        raise e.ProjectUnusable(
            f"A package called {package} would hide a module of Python or of a library; "
            f"{name}-server, for instance, would not."
        )
    if namespace is None:
        try:
            namespace = namespace_from_slug(name)
        except e.InvalidName as error:
            proposed = f", for instance {error.nearest}" if error.nearest else ""
            raise e.ProjectUnusable(
                f"The name {name} makes no namespace, which has 3 to 20 letters and digits; choose "
                f"one with --namespace{proposed}."
            ) from error
    check_free_namespace(namespace)
    return Wanted(name, namespace, package, sdk)


def server_files(wanted: Wanted) -> dict[str, str]:
    """Every file of the new project, by its path."""
    words = {
        "name": wanted.name,
        "title": wanted.title,
        "namespace": wanted.namespace,
        "Namespace": wanted.namespace.capitalize(),
        "package": wanted.package,
        "dependency": SDKS[wanted.sdk],
    }
    return {
        **fill_folder("common", words),
        **fill_folder(wanted.sdk, words),
        "NAMESPACES.md": register(wanted),
    }


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new or empty folder; what fails leaves nothing behind.

    Raises `ProjectUnusable` if something is there already, or the folder cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise e.ProjectUnusable(f"{folder} exists and is not an empty folder.")
    made: list[Path] = []
    try:
        for name, text in files.items():
            path = folder / name
            for parent in reversed([it for it in path.parents if not it.exists()]):
                parent.mkdir()
                made.append(parent)
            made.append(path)
            path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        why = (error.strerror or "unwritable").lower()
        raise e.ProjectUnusable(
            f"{error.filename or folder}: {why}; nothing was written."
        ) from None


def register(wanted: Wanted) -> str:
    """The page about the names of the new server, as it lists them."""
    project = Project(
        name=wanted.name,
        namespace=wanted.namespace,
        version=VERSION,
        declared=[
            Declared(
                kind=kind,
                name=make_tool_name(wanted.namespace, own)
                if kind in NAMED
                else f"{wanted.namespace}://{own}",
                description=description,
                mime_type=mime_type,
            )
            for kind, own, description, mime_type in OFFERED
        ],
    )
    registry = namespaces_md.registry_of(project)
    registry.validation = f"Runtime validation enabled (see `src/{wanted.package}/names.py`)"
    return namespaces_md.new_page(registry)
