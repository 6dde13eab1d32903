"""The linter: what a server calls its tools, resources and prompts, held against the conventions.

Each check looks at a `Project` and yields what it found, by the rule's id; `RULES` says what each
rule is and how severe, and `judge` selects among the findings.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from folkmoot.names import namespaces_md
from folkmoot.names.deprecation import Stage, numbers_of, stage
from folkmoot.names.grammar import (
    RESERVED_NAMES,
    TOOL,
    Fault,
    part_fault,
    resource_template_fault,
    resource_uri_fault,
    tool_name_fault,
)
from folkmoot.names.grammar import RULES as GRAMMAR
from folkmoot.names.limits import MAX_DIFFERENCES
from folkmoot.names.nearest import nearest_resource_uri, nearest_tool_name, snake_case, truncated
from folkmoot.names.project import NAMED, Declared, DeclaredDeprecation, Project
from folkmoot.names.safe_names import MOST_CHARACTERS, RESERVED_NAMESPACES

Severity: TypeAlias = Literal["error", "warning", "hint"]


class LintFinding(Struct, frozen=True, kw_only=True):
    """One thing found, by which rule, about which name, and in which line of the file."""

    rule: str
    severity: Severity
    message: str
    name: str = ""
    line: int | None = None


class RuleFinding(NamedTuple):
    """What a check found: the rule that is broken, a sentence, and the name it is about."""

    rule: str
    message: str
    about: Declared | None = None


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
OF_A_HUB: Final = re.compile(rf"(?:{'|'.join(sorted(RESERVED_NAMESPACES))})(?:/|://)")
"""How names begin that MMP and the hub have given: nobody else can have them."""
MAPPED: Final = re.compile(r"[a-z0-9]+://[a-z0-9_]+/-/")
"""A URI of another scheme as a hub shows it: its type is that scheme, and no noun."""


def checked(project: Project) -> Iterator[Declared]:
    """The names that the conventions are about."""
    for each in project.declared:
        others = each.kind not in NAMED and each.namespace in OTHERS_SCHEMES
        if not others and not (project.hub and OF_A_HUB.match(each.name)):
            yield each


def quoted(each: Declared) -> str:
    """The kind and the name, as messages begin."""
    return f"{each.kind.capitalize()} {truncated(each.name)!r}"


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
    if namespace is not None and ":" not in own:
        own = own.removeprefix(f"{namespace}_")
    near = nearest_tool_name(own, namespace)
    # Where nobody knows the namespace, the rest of the name can be right all the same.
    return snake_case(own) if near is None and ":" not in own and not namespace else near


def fault_of(each: Declared, namespace: str | None) -> Fault | None:
    """What is wrong with a name; one without a namespace may be wrong behind that as well."""
    if each.kind in NAMED:
        return tool_name_fault(each.name) if ":" in each.name else part_fault(TOOL, each.name)
    if "://" not in each.name:
        fault = resource_uri_fault(each.name, namespace)
        separated = fault is not None and fault.rule == "uri-separator"
        return fault if separated else Fault("plain-resource", 0)
    find = resource_template_fault if each.kind == "template" else resource_uri_fault
    return find(each.name, namespace)


def grammar(project: Project) -> Iterator[RuleFinding]:
    """Names that break the grammar, a name's first fault each."""
    for each in checked(project):
        fault = fault_of(each, project.namespace)
        if fault is None or fault.rule == "missing-namespace":
            continue
        near = proposal(each, project.namespace)
        if fault.rule == "plain-resource":
            form = f"{project.namespace or 'namespace'}://type/id"
            message = f"{quoted(each)} is a plain string, not a URI such as '{form}'.{near}"
        else:
            found = each.name[fault.position : fault.position + 1]
            told = found and not fault.rule.endswith("-length")
            where = f" (character {fault.position + 1} is {found!r})" if told else ""
            rule = GRAMMAR[fault.rule].removesuffix(".")
            if each.kind == "prompt":
                rule = rule.replace("A tool's", "A prompt's")
            message = f"{quoted(each)}: {rule}{where}.{near}"
        yield RuleFinding(fault.rule, message, each)


def missing_namespace(project: Project) -> Iterator[RuleFinding]:
    """Names that would collide behind a gateway."""
    for each in checked(project):
        bare = each.kind in NAMED and each.namespace is None
        if each.namespace == "" or (bare and not is_safe_spelling(each.name, project.namespace)):
            message = f"{quoted(each)} has no namespace.{proposal(each, project.namespace)}"
            yield RuleFinding("missing-namespace", message, each)


def is_safe_spelling(name: str, namespace: str | None) -> bool:
    """Whether a name is `ns_tool`, as model APIs take `ns:tool`."""
    begin, joint, own = name.partition("_")
    return bool(joint) and begin == namespace and part_fault(TOOL, own) is None


def generic_name(project: Project) -> Iterator[RuleFinding]:
    """Tools whose names say too little."""
    for each in checked(project):
        if each.kind in NAMED and each.own in GENERIC:
            message = f"{quoted(each)} does not say what it is about; add the noun: '{each.own}_…'."
            yield RuleFinding("generic-name", message, each)


def singular_type(project: Project) -> Iterator[RuleFinding]:
    """Resource types that are not plural."""
    for each in checked(project):
        mapped = project.hub and MAPPED.match(each.name)
        if each.kind in NAMED or mapped or fault_of(each, project.namespace) is not None:
            continue
        kind = each.own.partition("/")[0]
        if not is_plural(kind):
            message = f"{quoted(each)}: The type {kind!r} is singular; call it {plural(kind)!r}."
            yield RuleFinding("singular-type", message, each)


def long_name(project: Project) -> Iterator[RuleFinding]:
    """Names that model APIs refuse, by themselves or with what a client puts before them."""
    needs = "{namespace}" in project.client_prefix
    for each in checked(project):
        if each.kind in NAMED and len(each.name) > MOST_CHARACTERS:
            message = f"has {len(each.name)} characters; model APIs take {MOST_CHARACTERS}."
            yield RuleFinding("long-name", f"{quoted(each)} {message}", each)
            continue
        namespace = project.name if project.hub else each.namespace or project.namespace
        if each.kind != "tool" or (needs and namespace is None):
            continue
        prefix = project.client_prefix.replace("{namespace}", namespace or "")
        length = len(prefix) + len(each.name)
        if length > MOST_CHARACTERS:
            message = (
                f"{quoted(each)} has {length} characters with a client's prefix {prefix!r}; "
                f"model APIs take {MOST_CHARACTERS}."
            )
            yield RuleFinding("long-client-name", message, each)


def namespaces(project: Project) -> Iterator[RuleFinding]:
    """Names in other namespaces than the project's, or in several if nothing says which it is."""
    ours = project.namespace
    if project.hub:
        return
    named = [each for each in checked(project) if each.namespace and not fault_of(each, ours)]
    usual = Counter(each.namespace for each in named).most_common(1)
    for each in named:
        said = f"{quoted(each)} is in the namespace {each.namespace!r}"
        if ours is None:
            [(most, count)] = usual
            if each.namespace != most:
                others = f"{count} name{'s are' if count > 1 else ' is'} in {most!r}"
                message = f"{said}, and {others}; a project has one namespace."
                yield RuleFinding("mixed-namespaces", message, each)
        elif each.namespace != ours:
            near = f"{ours}{each.separator}{each.own}"
            message = f"{said}; this project's is {ours!r}. Did you mean '{near}'?"
            yield RuleFinding("foreign-namespace", message, each)


def reserved_namespace(project: Project) -> Iterator[RuleFinding]:
    """Reserved namespaces in use, each once."""
    used: dict[str | None, Declared] = {}
    for each in checked(project):
        used.setdefault(each.namespace, each)
    for namespace, each in used.items():
        if namespace in RESERVED_NAMES:
            message = f"The namespace {namespace!r} is reserved, and no server can have it."
            yield RuleFinding("reserved-namespace", message, each)


def collision(project: Project) -> Iterator[RuleFinding]:
    """Names that are listed twice, or come to the same in the safe spelling or in snake_case."""
    named: dict[tuple[str, str], Declared] = {}
    spelled: dict[tuple[str, str], Declared] = {}
    for each in project.declared:
        kind = each.kind if each.kind in NAMED else "resource"
        safe = snake_case(each.name.replace(":", "_")) if each.kind in NAMED else each.name
        first = named.setdefault((kind, each.name), each)
        if first is not each:
            message = f"{quoted(each)} is listed twice{at(first, '; the first time in')}."
            yield RuleFinding("collision", message, each)
        other = spelled.setdefault((kind, safe), each)
        if other.name != each.name:
            both = f"{quoted(each)} and {truncated(other.name)!r}{at(other, ' in')}"
            message = f"{both} are both {truncated(safe)!r} in the safe spelling."
            yield RuleFinding("safe-collision", message, each)


def at(each: Declared, begin: str) -> str:
    """Where a name is, in a sentence; nothing for one that is in no file."""
    return f"{begin} line {each.line}" if each.line else ""


VERSIONED: Final = re.compile(r"(?P<base>.+)_v(?P<number>[2-9]|[1-9][0-9])")


def undeprecated(project: Project) -> Iterator[RuleFinding]:
    """`x` beside `x_v2` without a word that it goes away."""
    named = {(each.kind, each.name): each for each in project.declared if each.kind in NAMED}
    reported: set[int] = set()
    for each in named.values():
        found = VERSIONED.fullmatch(each.name)
        if found is None:
            continue
        base = found["base"]
        for name in (base, *(f"{base}_v{n}" for n in range(1, int(found["number"])))):
            former = named.get((each.kind, name))
            if former is not None and former.deprecation is None and id(former) not in reported:
                reported.add(id(former))
                message = (
                    f"{quoted(former)} has a successor, {truncated(each.name)!r}, but its "
                    "description does not say that it is deprecated."
                )
                yield RuleFinding("undeprecated", message, former)


def deprecations(project: Project) -> Iterator[RuleFinding]:
    """What is wrong with how names go away: without a release, too late, or in a wrong order."""
    for each in project.declared:
        if each.deprecation is not None:
            for rule, message in deprecation_faults(each.deprecation, project.version):
                yield RuleFinding(rule, f"{quoted(each)} {message}", each)


def deprecation_faults(
    going: DeclaredDeprecation, version: str | None
) -> Iterator[tuple[str, str]]:
    """The rules that one deprecation breaks, with the rest of the sentence about each."""
    since, removed = going.since, going.removed_in
    if stage(going, version) is Stage.REMOVED:
        yield "past-removal", f"was to be removed in {removed}, and this is {version}."
    if removed is None:
        yield "removal-missing", "is deprecated, but nothing says in which release it is removed."
    for each in (since, removed):
        if each is not None and numbers_of(each) is None:
            message = f"names {truncated(each)!r} as a release. {GRAMMAR['version-syntax']}"
            yield "version-syntax", message
    begun, gone = (numbers_of(each) if each else None for each in (since, removed))
    if begun is not None and gone is not None and gone <= begun:
        message = f"is deprecated since {since} and removed in {removed}."
        yield "removal-order", f"{message} {GRAMMAR['removal-order']}"


def register(project: Project) -> Iterator[RuleFinding]:
    """A register of names that is not there, or says something else than the server."""
    file = project.namespaces_file
    if not project.compared or not project.declared:
        return
    if project.register is None:
        message = f"There is no {file}; 'folkmoot names doc' writes down the names of this project."
        yield RuleFinding("register-missing", message)
        return
    found = namespaces_md.differences(project, project.register)
    for sentence in found[:MAX_DIFFERENCES]:
        yield RuleFinding("register-outdated", f"{file}: {sentence}")
    if len(found) > MAX_DIFFERENCES:
        more = len(found) - MAX_DIFFERENCES
        message = f"{file}: {more} more; 'folkmoot names doc' rewrites it."
        yield RuleFinding("register-outdated", message)


CHECKS: Final[Sequence[Callable[[Project], Iterator[RuleFinding]]]] = (
    grammar, missing_namespace, namespaces, reserved_namespace, generic_name, long_name, collision,
    singular_type, undeprecated, deprecations, register,
)  # fmt: skip


class LintRule(NamedTuple):
    """One rule; its sentence says what must hold."""

    severity: Severity
    sentence: str
    example: str
    mend: str
    standalone: Severity | None = None
    """How severe it is for a server that is only ever used alone, if that differs."""

    @property
    def told(self) -> str:
        """How severe it is, in words."""
        alone = f", a {self.standalone} with `--standalone`" if self.standalone else ""
        return f"{'an' if self.severity == 'error' else 'a'} {self.severity}{alone}"


def _grammar(rule: str, example: str, mend: str) -> LintRule:
    return LintRule("error", GRAMMAR[rule], example, mend)


RULES: Final[dict[str, LintRule]] = {
    "missing-namespace": LintRule(
        "error",
        "A name begins with the project's namespace, so that it collides with nobody else's "
        "behind a gateway.",
        "`create_task`",
        "Register it as `myproject:create_task`.",
        standalone="hint",
    ),
    "foreign-namespace": LintRule(
        "error",
        "All names of a project are in its namespace.",
        "`otherproject:create_task`",
        "Use the project's own namespace, or correct it in `pyproject.toml`.",
        standalone="hint",
    ),
    "mixed-namespaces": LintRule(
        "error",
        "A project uses one namespace for all its names.",
        "`myproject:create_task` beside `acme:list_tasks`",
        "Choose one, and write it down in `pyproject.toml` as `namespace`.",
        standalone="hint",
    ),
    "reserved-namespace": LintRule(
        "error",
        "A namespace is none of the reserved names, such as `system`, `gateway` or `http`.",
        "`system:create_task`",
        "Choose a namespace that says whose the tools are.",
    ),
    "namespace-characters": _grammar(
        "namespace-characters", "`my-project:create_task`", "Leave out hyphens and upper case."
    ),
    "namespace-start": _grammar("namespace-start", "`3dtools:render`", "Begin it with a letter."),
    "namespace-length": _grammar(
        "namespace-length", "`mp:create_task`", "Use the project's name without hyphens."
    ),
    "tool-characters": _grammar(
        "tool-characters", "`myproject:create-task`", "Write it in snake_case: `create_task`."
    ),
    "tool-start": _grammar("tool-start", "`myproject:2fa_check`", "Begin it with a letter."),
    "tool-length": _grammar("tool-length", "`myproject:x`", "Say in a word or two what it does."),
    "generic-name": LintRule(
        "warning",
        "A tool's name says what it is about.",
        "`myproject:get`",
        "Add the noun: `myproject:get_task`.",
    ),
    "long-name": LintRule(
        "error",
        "A name has at most 64 characters, which is what model APIs take.",
        "`myproject:` followed by a tool's name of 55 characters",
        "Shorten the tool's name.",
    ),
    "long-client-name": LintRule(
        "warning",
        "A tool's name has at most 64 characters with what a client puts before it, such as "
        "`mcp__myproject__`.",
        "`myproject:` followed by a tool's name of 40 characters",
        "Shorten the tool's name, or set `client-prefix` to what your clients use.",
    ),
    "collision": LintRule(
        "error",
        "Each name is listed once.",
        "Two tools that are called `myproject:create_task`",
        "Rename one of them.",
    ),
    "safe-collision": LintRule(
        "error",
        "No two names are the same in the safe spelling, or once they are in snake_case.",
        "`myproject:createTask` beside `myproject:create_task`",
        "Rename one of them.",
    ),
    "plain-resource": LintRule(
        "error",
        "A resource is named by a URI, not by a plain string.",
        "`/templates/daily-report`",
        "Use `myproject://templates/daily-report`.",
    ),
    "uri-separator": _grammar(
        "uri-separator", "`myproject/templates/report.md`", "Write `myproject://templates/…`."
    ),
    "uri-length": _grammar("uri-length", "A URI with a document in its query", "Use an id."),
    "type-characters": _grammar(
        "type-characters", "`myproject://Templates/report.md`", "Write it in lower case."
    ),
    "type-start": _grammar("type-start", "`myproject://2d/plan`", "Begin it with a letter."),
    "type-length": _grammar("type-length", "`myproject://t/report.md`", "Use a plural noun."),
    "singular-type": LintRule(
        "warning",
        "A resource type is a plural noun.",
        "`myproject://template/report.md`",
        "Use `myproject://templates/report.md`.",
    ),
    "id-empty": _grammar("id-empty", "`myproject://templates`", "Say which one: `templates/all`."),
    "id-characters": _grammar(
        "id-characters", "`myproject://templates/daily report`", "Use kebab-case: `daily-report`."
    ),
    "id-dots": _grammar("id-dots", "`myproject://templates/../secrets`", "Name the resource."),
    "query-pair": _grammar("query-pair", "`myproject://docs/1?raw`", "Write `?raw=true`."),
    "query-key": _grammar("query-key", "`myproject://docs/1?max size=3`", "Write `max_size`."),
    "query-repeated": _grammar(
        "query-repeated", "`myproject://docs/1?tag=a&tag=b`", "Write `tag=a,b`."
    ),
    "query-value": _grammar(
        "query-value", "`myproject://docs/1?title=a b`", "Encode it: `title=a%20b`."
    ),
    "undeprecated": LintRule(
        "error",
        "What has a successor, `x` beside `x_v2`, is deprecated.",
        "`process_data` beside `process_data_v2`",
        'Say so in the description of the old one: "Deprecated since 1.4.0, removed in 1.6.0."',
    ),
    "past-removal": LintRule(
        "error",
        "What is deprecated is gone in the release that was announced.",
        'A description that says "removed in 1.4.0", in release 1.4.0',
        "Remove the tool, or announce a later release.",
    ),
    "removal-missing": LintRule(
        "warning",
        "A deprecation says in which release it ends.",
        'A description that only says "Deprecated"',
        'Add "removed in 1.6.0" to it.',
    ),
    "removal-order": _grammar(
        "removal-order",
        '"Deprecated since 1.4.0, removed in 1.2.0."',
        "Announce a later release; the policy is two releases later.",
    ),
    "version-syntax": _grammar(
        "version-syntax", '"next year" below "Removed In" in `NAMESPACES.md`', "Name a release."
    ),
    "register-missing": LintRule(
        "warning",
        "A project writes its names down in `NAMESPACES.md`.",
        "A project with tools and without that file",
        "Run `folkmoot names doc`.",
        standalone="hint",
    ),
    "register-outdated": LintRule(
        "error",
        "`NAMESPACES.md` says what the server says.",
        "A tool that was added after the file was written",
        "Run `folkmoot names doc`.",
    ),
}


def unknown_rule(name: str) -> str | None:
    """The error for an unknown rule; None for a known one."""
    if name in RULES:
        return None
    near = difflib.get_close_matches(name, RULES, 1)
    return f"there is no rule {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def judge(
    project: Project,
    *,
    standalone: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> list[LintFinding]:
    """What is found in a project by the rules that are selected, all if none is."""
    followed = {rule: at for at, rule in enumerate(RULES) if rule in (select or RULES)}
    found = (each for check in CHECKS for each in check(project) if each.rule in followed)
    findings = []
    for rule, message, about in found:
        row = RULES[rule]
        if rule not in ignore:
            finding = LintFinding(
                rule=rule,
                severity=(row.standalone if standalone else None) or row.severity,
                message=message,
                name=about.name if about else "",
                line=about.line if about else None,
            )
            findings.append(finding)
    return sorted(findings, key=lambda each: (each.line or 0, followed[each.rule]))
