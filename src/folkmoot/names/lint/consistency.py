"""Rules about a project's names together: namespaces, collisions, versions, the register."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from folkmoot.names.deprecation import Stage, numbers_of, stage
from folkmoot.names.generate.namespaces_md import differences
from folkmoot.names.grammar import RESERVED_NAMES, RULES
from folkmoot.names.limits import MAX_DIFFERENCES
from folkmoot.names.lint.model import (
    Declared,
    DeclaredDeprecation,
    Project,
    SourcePlace,
)
from folkmoot.names.lint.spelling import RuleFinding, checked, fault_of, finding_about, quoted
from folkmoot.names.nearest import snake_case


def foreign_namespace(project: Project) -> Iterator[RuleFinding]:
    """Names in another namespace than the project's."""
    ours = project.namespace
    if ours is None or project.hub:
        return
    for each in checked(project):
        theirs = each.namespace
        if theirs and theirs != ours and fault_of(each, ours) is None:
            separator = ":" if each.kind in {"tool", "prompt"} else "://"
            message = (
                f"{quoted(each)} is in the namespace {theirs!r}; this project's is {ours!r}. "
                f"Did you mean '{ours}{separator}{each.own}'?"
            )
            yield finding_about(each, "foreign-namespace", message)


def mixed_namespaces(project: Project) -> Iterator[RuleFinding]:
    """Names in several namespaces, where nothing says which one is the project's."""
    if project.namespace is not None or project.hub:
        return
    named = [each for each in checked(project) if each.namespace and not fault_of(each, None)]
    counts = Counter(each.namespace for each in named)
    if len(counts) < 2:
        return
    [(most, count)] = counts.most_common(1)
    for each in named:
        if each.namespace != most:
            message = (
                f"{quoted(each)} is in the namespace {each.namespace!r}, and {count} "
                f"name{'s are' if count > 1 else ' is'} in {most!r}; a project has one namespace."
            )
            yield finding_about(each, "mixed-namespaces", message)


def reserved_namespace(project: Project) -> Iterator[RuleFinding]:
    """Reserved namespaces in use, each once."""
    seen: set[str] = set()
    for constant in project.constants:
        if constant.value in RESERVED_NAMES and constant.value not in seen:
            seen.add(constant.value)
            yield RuleFinding(
                "reserved-namespace", reserved(constant.value), constant.place, constant.value
            )
    for each in checked(project):
        namespace = each.namespace
        if namespace in RESERVED_NAMES and namespace not in seen and namespace is not None:
            seen.add(namespace)
            yield finding_about(each, "reserved-namespace", reserved(namespace))


def reserved(namespace: str) -> str:
    """What is said of a reserved namespace."""
    return f"The namespace {namespace!r} is reserved, and no server can have it."


def collision(project: Project) -> Iterator[RuleFinding]:
    """Two registrations of one name with one server."""
    for first, second in pairs(project, lambda each: each.name):
        message = f"{quoted(second)} is registered twice; the first time {at(first.place)}."
        yield finding_about(second, "collision", message)


def safe_collision(project: Project) -> Iterator[RuleFinding]:
    """Two names that come to the same in the safe spelling, or in snake_case."""
    for first, second in pairs(project, spelled):
        if first.name != second.name:
            message = (
                f"{quoted(second)} and {first.name!r} are both {spelled(second)!r} in the safe "
                f"spelling; the other is {at(first.place)}."
            )
            yield finding_about(second, "safe-collision", message)


def spelled(each: Declared) -> str:
    """A tool's or prompt's name as clients see it; a URI unchanged."""
    if each.kind in {"resource", "template"}:
        return each.name
    return snake_case(each.name.replace(":", "_"))


def pairs(project: Project, key: Callable[[Declared], str]) -> Iterator[tuple[Declared, Declared]]:
    """Each name with the first earlier one of the same key that can be registered beside it."""
    groups: dict[tuple[str, ...], list[Declared]] = {}
    for each in project.declared:
        what = "resource" if each.kind == "template" else each.kind
        groups.setdefault((what, each.server, each.version, key(each)), []).append(each)
    for group in groups.values():
        for at, second in enumerate(group):
            first = next((each for each in group[:at] if not exclusive(each, second)), None)
            if first is not None:
                yield first, second


def exclusive(one: Declared, other: Declared) -> bool:
    """Whether two registrations are in different branches of one statement."""
    if one.place is None or other.place is None or one.place.path != other.place.path:
        return False
    branches = dict(one.branches)
    return any(branches.get(line, branch) != branch for line, branch in other.branches)


def at(place: SourcePlace | None) -> str:
    """A place in a sentence."""
    return "earlier in the list" if place is None else f"in {place.path}, line {place.line}"


VERSIONED: Final = re.compile(r"(?P<base>.+)_v(?P<number>[2-9]|[1-9][0-9])")


def undeprecated(project: Project) -> Iterator[RuleFinding]:
    """`x` beside `x_v2` without a word that it goes away."""
    named = {(each.server, each.kind, each.name): each for each in project.declared}
    reported: set[int] = set()
    for each in project.declared:
        found = VERSIONED.fullmatch(each.name)
        if found is None or each.kind not in {"tool", "prompt"}:
            continue
        earlier = (
            found["base"],
            *(f"{found['base']}_v{n}" for n in range(1, int(found["number"]))),
        )
        for name in earlier:
            former = named.get((each.server, each.kind, name))
            if former is not None and former.deprecation is None and id(former) not in reported:
                reported.add(id(former))
                message = (
                    f"{quoted(former)} has a successor, {each.name!r}, and is not deprecated; "
                    "mark it with @deprecated(since=…, removed_in=…)."
                )
                yield finding_about(former, "undeprecated", message)


def deprecated(project: Project) -> Iterator[tuple[Declared, DeclaredDeprecation]]:
    """The names that are going away."""
    for each in project.declared:
        if each.deprecation is not None:
            yield each, each.deprecation


def past_removal(project: Project) -> Iterator[RuleFinding]:
    """Names that should be gone in the release that the project is at."""
    for each, going in deprecated(project):
        if stage(going, project.version) is Stage.REMOVED:
            message = (
                f"{quoted(each)} was to be removed in {going.removed_in}, and this is "
                f"{project.version}."
            )
            yield finding_about(each, "past-removal", message)


def removal_missing(project: Project) -> Iterator[RuleFinding]:
    """Deprecations without a version or date of removal."""
    for each, going in deprecated(project):
        # A live server has no way to say it.
        if going.removed_in is None and not project.live:
            message = (
                f"{quoted(each)} is deprecated, but nothing says in which release it goes; use "
                "@deprecated(since=…, removed_in=…)."
            )
            yield finding_about(each, "removal-missing", message)


def version_syntax(project: Project) -> Iterator[RuleFinding]:
    """Releases that are no versions."""
    for each, going in deprecated(project):
        for version in (going.since, going.removed_in):
            if version is not None and numbers_of(version) is None:
                message = f"{quoted(each)}: {version!r} is no release. {RULES['version-syntax']}"
                yield finding_about(each, "version-syntax", message)


def removal_order(project: Project) -> Iterator[RuleFinding]:
    """Names that would be gone before they are deprecated."""
    for each, going in deprecated(project):
        begun = numbers_of(going.since) if going.since else None
        gone = numbers_of(going.removed_in) if going.removed_in else None
        if begun is not None and gone is not None and gone <= begun:
            message = (
                f"{quoted(each)} is deprecated since {going.since} and removed in "
                f"{going.removed_in}. {RULES['removal-order']}"
            )
            yield finding_about(each, "removal-order", message)


def register_missing(project: Project) -> Iterator[RuleFinding]:
    """A project whose names are written down nowhere."""
    if registrable(project) and project.namespaces_md is None and not unread(project):
        message = (
            f"There is no {project.namespaces_file}; 'folkmoot names doc' writes down the names of "
            "this project."
        )
        said = [each.place for each in project.constants]
        first = project.declared[0]
        yield RuleFinding(
            "register-missing", message, said[0] if said else first.place, lines=first.lines
        )


def register_outdated(project: Project) -> Iterator[RuleFinding]:
    """A register that says something else than the code."""
    if project.namespaces_md is None or not registrable(project):
        return
    found = differences(project, project.namespaces_md)
    place = SourcePlace(project.namespaces_file)
    for sentence in found[:MAX_DIFFERENCES]:
        yield RuleFinding("register-outdated", f"{project.namespaces_file}: {sentence}", place)
    if len(found) > MAX_DIFFERENCES:
        more = len(found) - MAX_DIFFERENCES
        message = f"{project.namespaces_file}: {more} more; 'folkmoot names doc' rewrites it."
        yield RuleFinding("register-outdated", message, place)


def registrable(project: Project) -> bool:
    """Whether the register of all the project's names can be told from what was read."""
    return bool(project.declared) and not project.live and not project.partial


def unread(project: Project) -> bool:
    """Whether the register is there, but could not be read."""
    return any(
        each.place is not None and each.place.path == project.namespaces_file
        for each in project.unreadable
    )
