"""Rules about one name by itself: its grammar, its words and its length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from folkmoot.names.grammar import (
    RULES,
    TOOL,
    Fault,
    part_fault,
    resource_template_fault,
    resource_uri_fault,
    tool_name_fault,
)
from folkmoot.names.lint.model import Declared, Edit, Project, SourcePlace
from folkmoot.names.nearest import nearest_resource_uri, nearest_tool_name, shown, snake_case
from folkmoot.names.safe_names import MOST_CHARACTERS


class RuleFinding(NamedTuple):
    """One thing that a rule found."""

    rule: str
    message: str
    place: SourcePlace | None
    name: str = ""
    lines: tuple[int, int] | None = None
    fix: Edit | None = None


def finding_about(
    each: Declared, rule: str, message: str, *, fix: Edit | None = None
) -> RuleFinding:
    """Something about a declared name."""
    return RuleFinding(rule, message, each.place, each.name, each.lines, fix)


GENERIC: Final = frozenset({
    "action", "add", "call", "change", "command", "create", "data", "delete", "do", "edit",
    "function", "get", "handle", "helper", "info", "insert", "item", "list", "main", "make",
    "method", "misc", "modify", "object", "process", "put", "remove", "set", "show", "stuff",
    "thing", "tool", "update", "util", "utils",
})  # fmt: skip
"""Verbs without their object, and nouns that could be anything.

`execute`, `run`, `read`, `search` and the like are not among them: a namespace often says enough,
as in the conventions' own `workflow:execute`.
"""

PLURAL: Final = frozenset({
    "accessories", "aliases", "audio", "bonuses", "children", "content", "criteria", "data",
    "documentation", "email", "emus", "equipment", "feedback", "fish", "geese", "gurus", "hardware",
    "health", "help", "history", "indices", "info", "information", "inventory", "knowledge", "mail",
    "matrices", "media", "memory", "men", "menus", "metadata", "mice", "music", "news",
    "people", "phenomena", "schemata", "series", "sheep", "software", "species", "staff", "storage",
    "teeth", "telemetry", "text", "traffic", "vertices", "weather", "women",
})  # fmt: skip
"""Plurals that do not look like one, and words that have none."""
SINGULAR: Final = frozenset({
    "alias", "atlas", "bias", "canvas", "chaos", "cosmos", "gas", "kubernetes", "lens", "pancreas",
})  # fmt: skip
"""Words that look like a plural, besides those in `ss`, `us` and `is`."""
SINGULAR_ENDINGS: Final = ("ss", "us", "is")
IRREGULAR: Final = {
    "child": "children",
    "index": "indexes",
    "man": "men",
    "person": "people",
    "woman": "women",
}


def is_plural(word: str) -> bool:
    """Whether a resource type names many, by the last of its words."""
    last = word.rpartition("_")[2].rstrip("0123456789") or word
    if last in PLURAL:
        return True
    if last in SINGULAR or last.endswith(SINGULAR_ENDINGS):
        return False
    return last.endswith("s")


def plural(word: str) -> str:
    """A word's plural, with the words before it."""
    head, joint, last = word.rpartition("_")
    return f"{head}{joint}{_plural(last)}"


def _plural(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("is"):
        return f"{word[:-2]}es"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in {"a", "e", "i", "o", "u"}:
        return f"{word[:-1]}ies"
    return f"{word}s"


OTHERS_SCHEMES: Final = frozenset({"ui"})
"""Schemes that MCP itself asks for: the pages of MCP Apps are `ui://…`, whoever has them."""


OF_A_HUB: Final = re.compile(r"(?:msg|room|chat|mmp|folkmoot)(?:/|://)")
"""How names begin that MMP and the hub have given: nobody else can have them."""
MAPPED: Final = re.compile(r"[a-z0-9]+://[a-z0-9_]+/-/")
"""A URI of another scheme as a hub shows it: its type is that scheme, and no noun."""


def checked(project: Project) -> Iterator[Declared]:
    """The names that the conventions are about."""
    for each in project.declared:
        uri = each.kind in {"resource", "template"}
        others = uri and each.namespace in OTHERS_SCHEMES
        if not others and not (project.hub and OF_A_HUB.match(each.name)):
            yield each


def grammar(project: Project) -> Iterator[RuleFinding]:
    """Names that break the grammar, a name's first fault each."""
    for each in checked(project):
        fault = fault_of(each, project.namespace)
        if fault is not None and fault.rule not in {"missing-namespace", "plain-resource"}:
            yield finding_about(each, fault.rule, sentence(each, fault, project.namespace))


def fault_of(each: Declared, namespace: str | None) -> Fault | None:
    """What is wrong with a name; one without a namespace may be wrong behind that as well."""
    if each.kind in {"tool", "prompt"}:
        if ":" in each.name:
            return tool_name_fault(each.name)
        return part_fault(TOOL, each.name)
    if "://" not in each.name:
        fault = resource_uri_fault(each.name, namespace)
        separated = fault is not None and fault.rule == "uri-separator"
        return fault if separated else Fault("plain-resource", 0)
    if each.kind == "template":
        return resource_template_fault(each.name, namespace)
    return resource_uri_fault(each.name, namespace)


def sentence(each: Declared, fault: Fault, namespace: str | None) -> str:
    """The rule, where it is broken, and the nearest name."""
    found = each.name[fault.position : fault.position + 1]
    told = found and not fault.rule.endswith("-length")
    where = f" (character {fault.position + 1} is {found!r})" if told else ""
    rule = RULES[fault.rule].removesuffix(".")
    if each.kind == "prompt":
        rule = rule.replace("A tool's", "A prompt's")
    return f"{quoted(each)}: {rule}{where}.{proposal(each, namespace)}"


def quoted(each: Declared) -> str:
    """The kind and the name, as messages begin."""
    return f"{each.kind.capitalize()} {shown(each.name)!r}"


def proposal(each: Declared, namespace: str | None) -> str:
    """`Did you mean …?`, where something valid is near."""
    near = nearest(each, namespace)
    return f" Did you mean {near!r}?" if near is not None and near != each.name else ""


def nearest(each: Declared, namespace: str | None) -> str | None:
    """The nearest valid name; none for a template, whose braces would be lost."""
    if each.kind == "template":
        return None
    if each.kind == "resource":
        return nearest_resource_uri(each.name, namespace)
    own = each.name
    # The safe spelling of a name that is in the namespace already.
    if namespace is not None and ":" not in own and own.startswith(f"{namespace}_"):
        own = own.removeprefix(f"{namespace}_")
    near = nearest_tool_name(own, namespace)
    # Where nobody knows the namespace, the rest of the name can be right all the same.
    return snake_case(own) if near is None and ":" not in own and not namespace else near


def missing_namespace(project: Project) -> Iterator[RuleFinding]:
    """Names that would collide behind a gateway."""
    for each in checked(project):
        if each.kind in {"tool", "prompt"}:
            spelled = ":" in each.name or is_safe_spelling(each.name, project.namespace)
            missing = not spelled or each.name.startswith(":")
        else:
            missing = each.name.startswith("://")
        if missing:
            message = f"{quoted(each)} has no namespace.{proposal(each, project.namespace)}"
            yield finding_about(each, "missing-namespace", message, fix=prefixed(project, each))


def is_safe_spelling(name: str, namespace: str | None) -> bool:
    """Whether a name is `ns_tool`, as model APIs take `ns:tool`."""
    begin, joint, own = name.partition("_")
    return bool(joint) and begin == namespace and part_fault(TOOL, own) is None


def prefixed(project: Project, each: Declared) -> Edit | None:
    """The edit that puts the namespace before a name, where the name is otherwise right."""
    written, namespace = each.written, project.namespace
    guessed = namespace is None or not project.namespace_said
    if guessed or each.kind not in {"tool", "prompt"} or part_fault(TOOL, each.name):
        return None
    own = each.name.removeprefix(f"{namespace}_")
    name = f"{namespace}:{each.name if part_fault(TOOL, own) else own}"
    if written.how == "literal" and written.span is not None:
        quote = project.texts[written.path].slice(written.span)[-1]
        return Edit(written.path, written.span, f"{quote}{name}{quote}")
    if written.how == "function" and written.insert is not None:
        insert = written.insert
        return Edit(insert.path, insert.span, insert.text.format(f'"{name}"'))
    return None


def plain_resource(project: Project) -> Iterator[RuleFinding]:
    """Resources that are named by something that is no URI."""
    for each in checked(project):
        fault = fault_of(each, project.namespace)
        if fault is not None and fault.rule == "plain-resource":
            message = (
                f"{quoted(each)} is a plain string, not a URI such as "
                f"'{project.namespace or 'namespace'}://type/id'."
                f"{proposal(each, project.namespace)}"
            )
            yield finding_about(each, "plain-resource", message)


def generic_name(project: Project) -> Iterator[RuleFinding]:
    """Tools whose names say too little."""
    for each in checked(project):
        if each.kind in {"tool", "prompt"} and each.own in GENERIC:
            message = f"{quoted(each)} does not say what it is about; add the noun: '{each.own}_…'."
            yield finding_about(each, "generic-name", message)


def singular_type(project: Project) -> Iterator[RuleFinding]:
    """Resource types that are not plural."""
    for each in checked(project):
        if each.kind in {"tool", "prompt"} or "://" not in each.name:
            continue
        if project.hub and MAPPED.match(each.name):
            continue
        kind = each.own.partition("/")[0].partition("?")[0]
        well_formed = fault_of(each, project.namespace) is None
        if well_formed and not is_plural(kind):
            message = f"{quoted(each)}: The type {kind!r} is singular; call it {plural(kind)!r}."
            yield finding_about(each, "singular-type", message)


def long_name(project: Project) -> Iterator[RuleFinding]:
    """Names that model APIs refuse even in the safe spelling."""
    for each in checked(project):
        if each.kind in {"tool", "prompt"} and len(each.name) > MOST_CHARACTERS:
            message = (
                f"{quoted(each)} has {len(each.name)} characters; model APIs take "
                f"{MOST_CHARACTERS}."
            )
            yield finding_about(each, "long-name", message)


def long_client_name(project: Project) -> Iterator[RuleFinding]:
    """Tools whose names become too long with what a client puts before them."""
    needs = "{namespace}" in project.client_prefix
    for each in checked(project):
        namespace = project.name if project.hub else each.namespace or project.namespace
        if each.kind != "tool" or (needs and namespace is None):
            continue
        prefix = project.client_prefix.replace("{namespace}", namespace or "")
        length = len(prefix) + len(each.name)
        if len(each.name) <= MOST_CHARACTERS < length:
            message = (
                f"{quoted(each)} has {length} characters with a client's prefix {prefix!r}; "
                f"model APIs take {MOST_CHARACTERS}."
            )
            yield finding_about(each, "long-client-name", message)
