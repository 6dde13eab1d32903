"""What is to be called what: the old and the new name, checked, and in every spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias

from folkmoot.core.errors import ProjectUnusable
from folkmoot.mcp.wire import PROMPTS_GET, RESOURCES_READ, TOOLS_CALL
from folkmoot.names.generate.rename.rewriting import Rule
from folkmoot.names.grammar import (
    check_free_namespace,
    validate_resource_template,
    validate_resource_uri,
    validate_tool_name,
)
from folkmoot.names.lint.model import Declared, Project
from folkmoot.names.wire import safe_name

What: TypeAlias = Literal["tool", "prompt", "resource", "template", "namespace"]
METHODS: dict[What, str] = {
    "tool": TOOLS_CALL,
    "prompt": PROMPTS_GET,
    "resource": RESOURCES_READ,
    "template": RESOURCES_READ,
}
"""What a client asks for to use a thing, which is what rights are about."""


class Renaming(NamedTuple):
    """One change of name."""

    what: What
    old: str
    new: str
    namespace: str
    """The one that the old name is in."""
    tools: tuple[str, ...] = ()
    """For a namespace: the own names of the tools and prompts in it."""

    @property
    def own(self) -> tuple[str, str]:
        """Both names without their namespace."""
        old, new = (name.partition(":")[2] or name for name in (self.old, self.new))
        return old, new

    @property
    def full(self) -> tuple[str, str]:
        """Both names with their namespace, also where the server leaves that to a gateway."""
        if self.what == "namespace" or ":" in self.old:
            return self.old, self.new
        return f"{self.namespace}:{self.old}", f"{self.namespace}:{self.new}"

    @property
    def words(self) -> dict[str, str]:
        """The names in every spelling that no other word in a text has, with what they become."""
        pairs = [self.full]
        if self.what == "namespace":
            pairs = [(f"{self.old}:{tool}", f"{self.new}:{tool}") for tool in self.tools]
        spelled = dict(pairs)
        if self.what not in {"resource", "template"}:
            spelled |= {safe_name(old): safe_name(new) for old, new in pairs}
        return spelled

    @property
    def spellings(self) -> dict[str, str]:
        """What a literal that is one of these becomes."""
        return self.words if self.what == "namespace" else {self.old: self.new, **self.words}

    @property
    def rules(self) -> list[Rule]:
        """How texts of clients are rewritten."""
        rules = [rule_of(old, new) for old, new in self.words.items()]
        if self.what == "namespace":
            rules += [
                (rf"(?<![\w.-]){self.old}(?=:(?://)?[a-z{{*`])", self.new),
                (rf"(?<=\[backends\.){self.old}(?=[\].])", self.new),
            ]
        return rules


def rule_of(old: str, new: str) -> Rule:
    """The rule for one whole name: not inside of a longer one, but behind a client's prefix."""
    return rf"(?:(?<![\w-])|(?<=__)){re.escape(old)}(?![\w/-]|\.\w)", new.replace("\\", r"\\")


def check_renaming(project: Project, old: str, new: str) -> tuple[Renaming, list[Declared]]:
    """The change, and the declarations it is about.

    Raises `ProjectUnusable` for a name that is not there or is taken, `InvalidName` for a new one
    that breaks the conventions.
    """
    if old == new:
        raise ProjectUnusable(f"{old} and {new} are the same name.")
    if any(it.name == new for it in project.declared):
        raise ProjectUnusable(f"{new} is taken: the project has it already.")
    found = [it for it in project.declared if it.name == old]
    if not found and ":" not in old:
        return check_namespace(project, old, new)
    if not found:
        raise ProjectUnusable(unknown(project, old))
    kind = found[0].kind
    namespace = found[0].namespace
    if kind in {"tool", "prompt"}:
        expected = namespace or project.namespace
        validate_tool_name(new if namespace else f"{expected}:{new}", expected)
    else:
        validate = validate_resource_template if kind == "template" else validate_resource_uri
        validate(new, namespace)
    return Renaming(kind, old, new, namespace or project.namespace or ""), found


def check_namespace(project: Project, old: str, new: str) -> tuple[Renaming, list[Declared]]:
    """The change of a namespace, with everything that is in it."""
    found = [it for it in project.declared if it.namespace == old]
    if not found and project.namespace != old:
        raise ProjectUnusable(unknown(project, old))
    check_free_namespace(new)
    own = sorted({it.own for it in found if it.kind in {"tool", "prompt"}})
    return Renaming("namespace", old, new, old, tuple(own)), found


def unknown(project: Project, name: str) -> str:
    """That a name is not there, and which one may have been meant."""
    known = {it.name for it in project.declared} | ({project.namespace or ""} - {""})
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]}?" if near else "."
    return f"The project has no name {name}{meant}"


def renaming_for_clients(
    old: str, new: str, known: Callable[[], Iterable[Declared]] = tuple
) -> Renaming:
    """The change for clients; `known` tells the names of the project, old or new, where needed.

    Raises `ProjectUnusable` for two names that are not of one kind.
    """
    if "://" in old and "://" in new:
        return Renaming("resource", old, new, old.partition("://")[0])
    if ":" in old and ":" in new and "://" not in f"{old}{new}":
        return Renaming("tool", old, new, old.partition(":")[0])
    if ":" in f"{old}{new}":
        raise ProjectUnusable(f"{old} and {new} are not names of one kind.")
    own = {it.own for it in known() if it.kind in {"tool", "prompt"} and it.namespace in {old, new}}
    return Renaming("namespace", old, new, old, tuple(sorted(own)))
