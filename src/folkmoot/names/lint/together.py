"""Rules about names beside each other: one namespace for all, and one thing for each name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from folkmoot.names.lint.model import Declared, Place, Project
from folkmoot.names.lint.spelling import checked, fault_of, quoted
from folkmoot.names.lint.telling import Told, told
from folkmoot.names.reserved import RESERVED_NAMES
from folkmoot.names.shape import snake_case


def foreign_namespace(project: Project) -> Iterator[Told]:
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
            yield told(each, "foreign-namespace", message)


def mixed_namespaces(project: Project) -> Iterator[Told]:
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
            yield told(each, "mixed-namespaces", message)


def reserved_namespace(project: Project) -> Iterator[Told]:
    """Namespaces that nobody can take, each once."""
    seen: set[str] = set()
    for constant in project.constants:
        if constant.value in RESERVED_NAMES and constant.value not in seen:
            seen.add(constant.value)
            yield Told(
                "reserved-namespace", reserved(constant.value), constant.place, constant.value
            )
    for each in checked(project):
        namespace = each.namespace
        if namespace in RESERVED_NAMES and namespace not in seen and namespace is not None:
            seen.add(namespace)
            yield told(each, "reserved-namespace", reserved(namespace))


def reserved(namespace: str) -> str:
    """What is said of a reserved namespace."""
    return f"The namespace {namespace!r} is reserved, and no server can have it."


def collision(project: Project) -> Iterator[Told]:
    """Two registrations of one name with one server."""
    for first, second in pairs(project, lambda each: each.name):
        message = f"{quoted(second)} is registered twice; the first time {at(first.place)}."
        yield told(second, "collision", message)


def safe_collision(project: Project) -> Iterator[Told]:
    """Two names that come to the same in the safe spelling, or in snake_case."""
    for first, second in pairs(project, spelled):
        if first.name != second.name:
            message = (
                f"{quoted(second)} and {first.name!r} are both {spelled(second)!r} in the safe "
                f"spelling; the other is {at(first.place)}."
            )
            yield told(second, "safe-collision", message)


def spelled(each: Declared) -> str:
    """A tool's or a prompt's name as clients see it; a URI stays as it is."""
    if each.kind in {"resource", "template"}:
        return each.name
    return snake_case(each.name.replace(":", "_"))


def pairs(project: Project, key: Callable[[Declared], str]) -> Iterator[tuple[Declared, Declared]]:
    """Each name with the first one before it that has the same key and can be there as well."""
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
    """Whether the two are in different branches of one statement, so that only one is there."""
    if one.place is None or other.place is None or one.place.path != other.place.path:
        return False
    branches = dict(one.branches)
    return any(branches.get(line, branch) != branch for line, branch in other.branches)


def at(place: Place | None) -> str:
    """A place in a sentence."""
    return "earlier in the list" if place is None else f"in {place.path}, line {place.line}"
