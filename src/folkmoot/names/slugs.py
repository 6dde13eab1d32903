"""A namespace from the name of a project."""

from __future__ import annotations

import re

from folkmoot.names.faults import NAMESPACE, Fault, part_fault
from folkmoot.names.nearest import nearest_namespace
from folkmoot.names.refusal import refuse, shown

MOST_READ = 256
"""Enough to tell what is wrong with a slug."""

UNFIT = re.compile(r"[^A-Za-z0-9._-]")
JOINT = re.compile(r"[._-]")
SCOPED = re.compile(r"@[^/]*/(.+)")


def namespace_from_slug(slug: str) -> str:
    """`myawesomeserver` for `my-awesome-server`; raises `InvalidName` with a proposal.

    Hyphens, dots, underscores and upper case do not tell one project from another, so they go.
    Nothing else does without being asked: what is too long is never cut here.
    """
    read = slug[:MOST_READ]
    namespace = JOINT.sub("", read).lower()
    if fault := _fault(read, namespace):
        scoped = SCOPED.fullmatch(read)
        refuse(
            f"Invalid slug for a namespace: {shown(slug)}",
            slug,
            fault,
            nearest_namespace(scoped[1] if scoped else slug),
        )
    return namespace


def _fault(slug: str, namespace: str) -> Fault | None:
    """What is wrong with the slug, or with what it comes to, told at the slug's own characters."""
    if unfit := UNFIT.search(slug):
        return Fault("slug-characters", unfit.start())
    fault = part_fault(NAMESPACE, namespace)
    if fault is None:
        return None
    kept = [at for at, character in enumerate(slug) if not JOINT.match(character)]
    return Fault(fault.rule, (*kept, len(slug))[min(fault.position, len(kept))])
