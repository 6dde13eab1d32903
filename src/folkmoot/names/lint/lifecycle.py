"""Rules about how names come and go: versions, deprecations, and the register of names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from folkmoot.names.generate.namespaces_md import differences
from folkmoot.names.lint.model import Declared, Deprecation, Place, Project
from folkmoot.names.lint.spelling import quoted
from folkmoot.names.lint.telling import Told, told
from folkmoot.names.policy import Stage, stage
from folkmoot.names.rules import RULES
from folkmoot.names.versions import numbers_of

VERSIONED: Final = re.compile(r"(?P<base>.+)_v(?P<number>[2-9]|[1-9][0-9])")
MOST_DIFFERENCES: Final = 5
"""Of a register that is out of date, how many are told."""


def undeprecated(project: Project) -> Iterator[Told]:
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
                yield told(former, "undeprecated", message)


def deprecated(project: Project) -> Iterator[tuple[Declared, Deprecation]]:
    """The names that are going away."""
    for each in project.declared:
        if each.deprecation is not None:
            yield each, each.deprecation


def past_removal(project: Project) -> Iterator[Told]:
    """Names that should be gone in the release that the project is at."""
    for each, going in deprecated(project):
        if stage(going, project.version) is Stage.REMOVED:
            message = (
                f"{quoted(each)} was to be removed in {going.removed_in}, and this is "
                f"{project.version}."
            )
            yield told(each, "past-removal", message)


def removal_missing(project: Project) -> Iterator[Told]:
    """Deprecations that do not say when they end."""
    for each, going in deprecated(project):
        # A live server has no way to say it.
        if going.removed_in is None and not project.live:
            message = (
                f"{quoted(each)} is deprecated, but nothing says in which release it goes; use "
                "@deprecated(since=…, removed_in=…)."
            )
            yield told(each, "removal-missing", message)


def version_syntax(project: Project) -> Iterator[Told]:
    """Releases that are no versions."""
    for each, going in deprecated(project):
        for version in (going.since, going.removed_in):
            if version is not None and numbers_of(version) is None:
                message = f"{quoted(each)}: {version!r} is no release. {RULES['version-syntax']}"
                yield told(each, "version-syntax", message)


def removal_order(project: Project) -> Iterator[Told]:
    """Names that would be gone before they are deprecated."""
    for each, going in deprecated(project):
        begun = numbers_of(going.since) if going.since else None
        gone = numbers_of(going.removed_in) if going.removed_in else None
        if begun is not None and gone is not None and gone <= begun:
            message = (
                f"{quoted(each)} is deprecated since {going.since} and removed in "
                f"{going.removed_in}. {RULES['removal-order']}"
            )
            yield told(each, "removal-order", message)


def register_missing(project: Project) -> Iterator[Told]:
    """A project whose names are written down nowhere."""
    if registrable(project) and project.namespaces_md is None and not unread(project):
        message = (
            f"There is no {project.namespaces_file}; 'folkmoot names doc' writes down the names of "
            "this project."
        )
        said = [each.place for each in project.constants]
        first = project.declared[0]
        yield Told("register-missing", message, said[0] if said else first.place, lines=first.lines)


def register_outdated(project: Project) -> Iterator[Told]:
    """A register that says something else than the code."""
    if project.namespaces_md is None or not registrable(project):
        return
    found = differences(project, project.namespaces_md)
    place = Place(project.namespaces_file)
    for sentence in found[:MOST_DIFFERENCES]:
        yield Told("register-outdated", f"{project.namespaces_file}: {sentence}", place)
    if len(found) > MOST_DIFFERENCES:
        more = len(found) - MOST_DIFFERENCES
        message = f"{project.namespaces_file}: {more} more; 'folkmoot names doc' rewrites it."
        yield Told("register-outdated", message, place)


def registrable(project: Project) -> bool:
    """Whether the register of all the project's names can be told from what was read."""
    return bool(project.declared) and not project.live and not project.partial


def unread(project: Project) -> bool:
    """Whether the register is there, but could not be read."""
    return any(
        each.place is not None and each.place.path == project.namespaces_file
        for each in project.unreadable
    )
