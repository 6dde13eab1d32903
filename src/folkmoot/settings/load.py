"""Merging: default, then file, then environment, then command line; the last one wins."""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from folkmoot.core.errors import SettingsError
from folkmoot.settings.consistency import contradictions
from folkmoot.settings.fields import FIELDS, SECTIONS, BadValue, check, read_text, shown
from folkmoot.settings.model import Settings
from folkmoot.settings.sources import (
    CONFIG_NAME,
    Document,
    Problem,
    Unreadable,
    find_file,
    read_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["CONFIG_NAME", "OTHER_VARIABLES", "Loaded", "load"]

PREFIX = "FOLKMOOT_"
OTHER_VARIABLES = {
    "FOLKMOOT_CONFIG": "The settings file, when `--config` does not name one.",
    "FOLKMOOT_CREDENTIALS": "The file in which the command line keeps the accounts you use.",
    "FOLKMOOT_INVITATION": "The invitation with which `folkmoot room join --invitation` comes in.",
    "FOLKMOOT_PASSPHRASE": "The passphrase of `folkmoot bridge key export` and `import`.",
    "FOLKMOOT_DEBUG": "When set to anything, an unexpected error shows its traceback.",
    "FOLKMOOT_TEST_PROFILE": "How deep the project's own tests search; a hub ignores it.",
}
"""Variables with our prefix that are not settings."""

SERVICE_LINKS = {
    r"FOLKMOOT(_[A-Z0-9_]+)?_SERVICE_HOST": r".*",
    r"FOLKMOOT(_[A-Z0-9_]+)?_SERVICE_PORT(_[A-Z0-9_]+)?": r"[0-9]+",
    r"FOLKMOOT(_[A-Z0-9_]+)?_PORT": r"(tcp|udp|sctp)://.*",
    r"FOLKMOOT(_[A-Z0-9_]+)?_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?": r".*",
}
"""Names and values of the variables that Kubernetes and Docker make for a service whose name begins
with `folkmoot`: nobody meant them for the hub."""

FROM_FILE, FROM_ENVIRONMENT, FROM_OPTION = range(3)
MAX_PROBLEMS = 50


class Loaded(Struct, frozen=True, kw_only=True):
    """The settings, where each value came from, and the file that was read, if one was."""

    settings: Settings
    origins: dict[str, str]
    file: str | None


class Merge(Struct, kw_only=True):
    """The values found so far with their origins, and what is wrong with the others."""

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    origins: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)

    def set(self, path: str, value: Any, origin: str) -> None:
        """A later source takes the place of an earlier one."""
        self.values[path], self.origins[path] = value, origin

    def refuse(self, source: int, line: int, text: str) -> None:
        """Note a problem; all are told together."""
        self.problems.append(Problem(source, line, text))


def load(
    config: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Loaded:
    """The effective settings, or one `SettingsError` that tells everything wrong, a line each.

    `options` are the command line's, by path (`"log.level"`); those that are `None` were not given.
    """
    environ = os.environ if environ is None else environ
    options = {path: value for path, value in (options or {}).items() if value is not None}
    merge = Merge()
    found = find_file(os.fspath(config) if config is not None else None, environ, options)
    if found is not None:
        name, in_data_folder = found
        try:
            take_file(merge, read_file(name, in_data_folder=in_data_folder))
        except Unreadable as error:
            merge.refuse(FROM_FILE, 0, str(error))
    take_environment(merge, environ)
    take_options(merge, options)
    if merge.problems:
        raise failure(merge.problems)
    settings = build(merge.values)
    if wrong := list(contradictions(settings)):
        raise failure([contradiction(merge, *each) for each in wrong])
    origins = {path: merge.origins.get(path, "default") for path in FIELDS}
    return Loaded(settings=settings, origins=origins, file=found and found[0])


def take_file(merge: Merge, document: Document) -> None:
    """Every setting of the file, and every key that is none."""
    for section, name, value in flatten(document.values):
        key = (section, name) if section else (name,)
        path = ".".join(key)
        where, line = document.where(*key)
        if name in SECTIONS and not section:
            wrong = f"{name} must be a table of settings, not {shown(value)}"
        elif path not in FIELDS:
            wrong = f"unknown {unknown(section, name, value)}"
        elif FIELDS[path].secret:
            wrong = (
                f"{path} is a secret and cannot be set in a file; set {FIELDS[path].variable} "
                "in the environment"
            )
        elif path == "data" and document.in_data_folder:
            wrong = (
                "data cannot be set in the data folder's own file; use --data or FOLKMOOT_DATA, "
                "or name the file with --config"
            )
        else:
            try:
                merge.set(path, check(FIELDS[path], value), where)
                continue
            except BadValue as error:
                wrong = f"{path} {error}"
        merge.refuse(FROM_FILE, line, f"{where}: {wrong}")


def take_environment(merge: Merge, environ: Mapping[str, str]) -> None:
    """Every variable with our prefix; one that means nothing is a mistake, not a wish."""
    variables = {field.variable: field for field in FIELDS.values()}
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        if name in OTHER_VARIABLES or is_service_link(name, environ[name]):
            continue
        if name not in variables:
            hint = nearest(name, [*variables, *OTHER_VARIABLES])
            merge.refuse(FROM_ENVIRONMENT, 0, f"{shown(name)[1:-1]}: unknown variable{hint}")
            continue
        field = variables[name]
        try:
            merge.set(field.path, read_text(field, environ[name]), name)
        except BadValue as error:
            merge.refuse(FROM_ENVIRONMENT, 0, f"{name} {error}")


def is_service_link(name: str, value: str) -> bool:
    """Whether a container platform made the variable to tell where a service is."""
    return any(
        re.fullmatch(names, name) and re.fullmatch(values, value)
        for names, values in SERVICE_LINKS.items()
    )


def take_options(merge: Merge, options: Mapping[str, Any]) -> None:
    """The command line's options, as text or as values."""
    for path, value in options.items():
        field = FIELDS[path]
        try:
            converted = read_text(field, value) if isinstance(value, str) else check(field, value)
            merge.set(path, converted, field.option)
        except BadValue as error:
            merge.refuse(FROM_OPTION, 0, f"{field.option} {error}")


def flatten(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Section, name and value of each key; the section is empty at the top."""
    for name, value in values.items():
        if name in SECTIONS and isinstance(value, dict):
            yield from ((name, inner, each) for inner, each in value.items())
        else:
            yield "", name, value


def unknown(section: str, name: str, value: object) -> str:
    """What is not known, in which table, and what was probably meant."""
    key = shown(name)[1:-1]
    if not section and isinstance(value, dict):
        return f"table [{key}]{nearest(name, SECTIONS, '[{}]')}"
    place = f" in [{section}]" if section else ""
    names = [field.name for field in FIELDS.values() if field.section == section]
    hint = nearest(name, names) or elsewhere(name, section)
    return f"setting '{key}'{place}{hint}"


def elsewhere(name: str, section: str) -> str:
    """The hint for a setting written in the wrong table."""
    others = {field.name: field for field in FIELDS.values() if field.section != section}
    for match in difflib.get_close_matches(name[:100], others, 1, 0.75):
        home = others[match].section
        return f"; did you mean '{match}' {f'in [{home}]' if home else 'at the top of the file'}?"
    return ""


def nearest(name: str, known: Iterable[str], spelled: str = "'{}'") -> str:
    """The hint for a name that is nearly right."""
    matches = difflib.get_close_matches(name[:100], list(known), 1, 0.7)
    return f"; did you mean {spelled.format(matches[0])}?" if matches else ""


def contradiction(merge: Merge, path: str, text: str) -> Problem:
    """A problem of values that are right alone, told where one of them was set."""
    return Problem(FROM_FILE, 0, f"{merge.origins[path]}: {text}")


def build(values: Mapping[str, Any]) -> Settings:
    """The struct from checked values by path."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        section, _, name = path.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return msgspec.convert(nested, Settings)


def failure(problems: list[Problem]) -> SettingsError:
    """One error that tells every problem, in the order of the file."""
    lines = [problem.text for problem in sorted(problems)]
    if len(lines) > MAX_PROBLEMS:
        lines[MAX_PROBLEMS:] = [f"… and {len(lines) - MAX_PROBLEMS} more"]
    return SettingsError("\n".join(lines), problems=lines)
