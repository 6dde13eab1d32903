"""The names of a project: from its Python sources, or from a live server's lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from os.path import commonpath
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from folkmoot.names.generate import namespaces_md
from folkmoot.names.grammar import NAMESPACE as NAMESPACE_PART
from folkmoot.names.grammar import part_fault
from folkmoot.names.lint.declarations import first_line
from folkmoot.names.lint.model import (
    Constant,
    Declared,
    DeclaredDeprecation,
    Kind,
    LintFinding,
    Project,
    SourcePlace,
)
from folkmoot.names.lint.modules import (
    Module,
    Modules,
    Site,
    literal,
    parse,
)
from folkmoot.names.lint.project import (
    FileText,
    FoundProject,
    SourceUnreadable,
    find_config,
    make_text,
    read_source,
    shown,
    sources,
)
from folkmoot.names.lint.registrations import Registrations
from folkmoot.names.lint.servers import RUN_TIME, UNKNOWN, ServerObjects
from folkmoot.names.lint.values import NAMESPACE, Values, says_deprecated
from folkmoot.names.safe_names import NAME_KEY

VERSION = "__version__"
MENTIONED = re.compile("|".join(("tool", "resource", "prompt", *RUN_TIME)), re.IGNORECASE)
"""What a source says somewhere if it registers anything."""


def find_project(paths: Sequence[Path]) -> FoundProject:
    """The project that some files and folders belong to."""
    whole = [path.absolute() for path in paths] or [Path.cwd()]
    folders = [each if each.is_dir() else each.parent for each in whole]
    return find_config(Path(commonpath(folders)))


def read_sources(
    paths: Sequence[Path],
    found: FoundProject | None = None,
    instead: Mapping[str, str] | None = None,
) -> Project:
    """Everything that the sources under some paths declare; `found` is what is configured.

    `instead` has texts for files, by their place, to take for what is in them.
    Files that cannot be read are findings of the project. Raises `ProjectUnusable` for a path that
    is not there, and `SettingsError` for a configuration that is wrong.
    """
    found = found or find_project(paths)
    project = Project(
        root=found.root,
        name=found.name,
        namespaces_file=found.config.namespaces_file,
        client_prefix=found.config.client_prefix,
    )
    whole = [path.absolute() for path in paths] or [found.root]
    modules = Modules(_modules(project, whole, found, instead or {}))
    project.partial = all(path.is_file() for path in whole)
    project.constants = [*([found.constant] if found.constant else []), *_constants(modules)]
    _read_register(project)
    project.namespace = (
        found.config.namespace
        or only(each.value for each in project.constants)
        or (namespaces_md.read(project.namespaces_md or "").namespace or None)
    )
    project.namespace_said = project.namespace is not None
    project.version = found.config.version or found.version or _version(modules, found)
    _declare(project, modules)
    if project.namespace is None:
        names = [each for each in project.declared if each.kind in {"tool", "prompt"}]
        used = (each.namespace for each in names if each.namespace is not None)
        project.namespace = only(used) or safe_namespace([each.name for each in names], found.name)
    return project


def _modules(
    project: Project, paths: Sequence[Path], found: FoundProject, instead: Mapping[str, str]
) -> Iterable[Module]:
    def trouble(error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        path = shown(found.root, Path(str(error.filename)))
        project.unreadable.append(unreadable(path, f"It cannot be read: {reason}."))

    for file in sources(found.root, paths, found.config.exclude, trouble):
        path = shown(found.root, file)
        try:
            if path in instead:
                module = parse(path, make_text(path, instead[path]))
            else:
                module = parse(path, read_source(file, path))
        except SourceUnreadable as error:
            project.unreadable.append(unreadable(path, str(error), error.line))
        except RecursionError:
            project.unreadable.append(unreadable(path, "It is nested too deeply to be read."))
        else:
            project.files.append(path)
            project.texts[path] = module.file
            yield module


def unreadable(path: str, message: str, line: int = 1) -> LintFinding:
    """That a file was not looked at."""
    place = SourcePlace(path, line, 1, line, 1)
    return LintFinding(rule="unreadable", severity="error", message=message, place=place)


def _declare(project: Project, modules: Modules) -> None:
    values = Values(modules, project.namespace)
    servers = ServerObjects(values)
    found: list[Declared] = []
    for module in modules.all:
        if not MENTIONED.search(module.file.text):
            continue
        try:
            walked = Registrations(module, values, servers)
        except RecursionError:
            project.unreadable.append(
                unreadable(module.file.path, "It is nested too deeply to be read.")
            )
        else:
            found += walked.declared
            project.notes += walked.notes
    # A server that is handed to functions is most likely the one that there is.
    made = {each.server for each in found if each.server != UNKNOWN and "#" not in each.server}
    single = next(iter(made)) if len(made) == 1 else UNKNOWN
    project.declared = [
        structs.replace(each, server=single) if each.server == UNKNOWN else each for each in found
    ]


def _constants(modules: Modules) -> Iterable[Constant]:
    """Where the sources say which namespace is theirs."""
    for module in modules.all:
        value = module.scope.names.get(NAMESPACE)
        if isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            span = literal(module, value).span
            if span is not None:
                yield Constant(
                    name=NAMESPACE,
                    value=value.value,
                    place=module.file.place(span),
                    span=span,
                )


def _version(modules: Modules, found: FoundProject) -> str | None:
    """The version constant of the project's package, for names built from it."""
    package = found.name.replace("-", "_").replace(".", "_").lower()
    for module in modules.all:
        if module.name.lower() == package:
            return Values(modules, None).text(Site(module), ast.Name(id=VERSION))
    return None


def safe_namespace(names: Sequence[str], title: str) -> str | None:
    """The namespace that all names begin with in the safe spelling, if the title names it too.

    `git_log` and `git_diff` of `mcp-server-git` are in the namespace `git`; `get_time` and
    `get_date` of `clock` are in none.
    """
    begins = only(name.partition("_")[0] if "_" in name else "" for name in names)
    if not begins or len(names) < 2 or part_fault(NAMESPACE_PART, begins):
        return None
    return begins if begins in re.sub("[^a-z0-9]", "", title.lower()) else None


def only(values: Iterable[str]) -> str | None:
    """The one value that all are; None for none, and for several."""
    distinct = set(values)
    return next(iter(distinct)) if len(distinct) == 1 else None


def _read_register(project: Project) -> None:
    file = project.root / project.namespaces_file
    try:
        if not file.exists():
            return
        text: FileText = read_source(file, project.namespaces_file)
    except (OSError, SourceUnreadable) as error:
        project.unreadable.append(unreadable(project.namespaces_file, str(error)))
    else:
        project.namespaces_md = text.text


KEYS: Final[dict[Kind, str]] = {
    "tool": "name",
    "resource": "uri",
    "template": "uriTemplate",
    "prompt": "name",
}
NAMED: Final[tuple[Kind, ...]] = ("tool", "prompt")
"""What is called by a name and not by a URI."""

Definitions = Sequence[Mapping[str, Any]]


def read_lists(
    lists: Mapping[Kind, Definitions],
    server: Mapping[str, Any],
    *,
    namespace: str | None = None,
    version: str | None = None,
) -> Project:
    """A project of what a server lists; the namespace is the one its names agree on, if any."""
    project = Project(root=Path(), live=True, namespace=namespace)
    project.name = text(server, "name")
    entries = [each for definitions in lists.values() for each in definitions]
    project.hub = any(canonical_of(each) for each in entries)
    if namespace is None and not project.hub:
        named = [text(each, "name") for kind in NAMED for each in lists.get(kind, ())]
        namespace = safe_namespace(named, project.name)
    project.version = version or text(server, "version") or None
    for kind, definitions in lists.items():
        project.declared += [declared(kind, each, namespace) for each in definitions]
    if project.namespace is None and not project.hub:
        used = (each.namespace for each in project.declared if each.kind in NAMED)
        project.namespace = only(each for each in used if each is not None)
    return project


def declared(kind: Kind, definition: Mapping[str, Any], namespace: str | None) -> Declared:
    """One entry of a list."""
    name = text(definition, KEYS[kind])
    canonical = canonical_of(definition)
    safe = f"{namespace}_"
    if kind in NAMED:
        if canonical:
            name = canonical
        elif namespace is not None and name.startswith(safe):
            # On the wire a name may be in the safe spelling.
            name = f"{namespace}:{name.removeprefix(safe)}"
    description = text(definition, "description")
    return Declared(
        kind=kind,
        name=name,
        description=first_line(description),
        mime_type=text(definition, "mimeType"),
        deprecation=DeclaredDeprecation() if says_deprecated(description) else None,
    )


def canonical_of(definition: Mapping[str, Any]) -> str:
    """The canonical name that a hub tells; empty for whatever no hub lists."""
    meta = definition.get("_meta")
    return text(meta, NAME_KEY) if isinstance(meta, Mapping) else ""


def text(values: Mapping[str, Any], key: str) -> str:
    """A string; empty for anything else."""
    value = values.get(key)
    return value if isinstance(value, str) else ""
