"""The rules, as a table: severity, sentence, example and fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from folkmoot.names.grammar import RULES as GRAMMAR
from folkmoot.names.lint import consistency, spelling
from folkmoot.names.lint.model import LintFinding, Project, Severity
from folkmoot.names.lint.spelling import RuleFinding

Check: TypeAlias = Callable[[Project], Iterator[RuleFinding]]


class LintRule(NamedTuple):
    """One rule; its sentence says what must hold."""

    severity: Severity
    sentence: str
    example: str
    """Something that breaks it."""
    mend: str
    """What to do about it, in a sentence."""
    check: Check | None
    """What finds it; None for what shows while files are read."""
    standalone: Severity | None = None
    """How severe it is for a server that is only ever used alone, if that differs."""
    live: Severity | None = None
    """The same for a running server, which may not say what its sources do."""
    fixable: bool = False
    """Whether `--fix` may mend it."""


def _grammar(rule: str, example: str, mend: str) -> LintRule:
    return LintRule("error", GRAMMAR[rule], example, mend, spelling.grammar)


RULES: Final[dict[str, LintRule]] = {
    "missing-namespace": LintRule(
        "error",
        "A name begins with the project's namespace, so that it collides with nobody else's "
        "behind a gateway.",
        '`@mcp.tool(name="create_task")`',
        "Register it as `myproject:create_task`.",
        spelling.missing_namespace,
        standalone="hint",
        fixable=True,
    ),
    "foreign-namespace": LintRule(
        "error",
        "All names of a project are in its namespace.",
        '`@mcp.tool(name="otherproject:create_task")`',
        "Use the project's own namespace, or correct it in `pyproject.toml`.",
        consistency.foreign_namespace,
        standalone="hint",
    ),
    "mixed-namespaces": LintRule(
        "error",
        "A project uses one namespace for all its names.",
        "`myproject:create_task` beside `acme:list_tasks`",
        "Choose one, and write it down in `pyproject.toml` as `namespace`.",
        consistency.mixed_namespaces,
        standalone="hint",
    ),
    "reserved-namespace": LintRule(
        "error",
        "A namespace is none of the reserved names, such as `system`, `gateway` or `http`.",
        '`NAMESPACE = "system"`',
        "Choose a namespace that says whose the tools are.",
        consistency.reserved_namespace,
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
        spelling.generic_name,
    ),
    "long-name": LintRule(
        "error",
        "A name has at most 64 characters, which is what model APIs take.",
        "`myproject:` followed by a tool's name of 55 characters",
        "Shorten the tool's name.",
        spelling.long_name,
    ),
    "long-client-name": LintRule(
        "warning",
        "A tool's name has at most 64 characters with what a client puts before it, such as "
        "`mcp__myproject__`.",
        "`myproject:` followed by a tool's name of 40 characters",
        "Shorten the tool's name, or set `client-prefix` to what your clients use.",
        spelling.long_client_name,
    ),
    "collision": LintRule(
        "error",
        "Each name is registered once with a server.",
        "Two functions that are registered as `myproject:create_task`",
        "Rename one of them.",
        consistency.collision,
    ),
    "safe-collision": LintRule(
        "error",
        "No two names are the same in the safe spelling, or once they are in snake_case.",
        "`myproject:createTask` beside `myproject:create_task`",
        "Rename one of them.",
        consistency.safe_collision,
    ),
    "plain-resource": LintRule(
        "error",
        "A resource is named by a URI, not by a plain string.",
        '`@mcp.resource("/templates/daily-report")`',
        "Use `myproject://templates/daily-report`.",
        spelling.plain_resource,
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
        spelling.singular_type,
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
        "Mark the old one with `@deprecated(since=…, removed_in=…)`, below the decorator that "
        "registers it.",
        consistency.undeprecated,
        live="warning",
    ),
    "past-removal": LintRule(
        "error",
        "What is deprecated is gone in the release that was announced.",
        '`removed_in="1.4.0"` in release 1.4.0',
        "Remove the tool, or announce a later release.",
        consistency.past_removal,
    ),
    "removal-missing": LintRule(
        "warning",
        "A deprecation says in which release it ends.",
        'A docstring that begins with "Deprecated"',
        "Use `@deprecated(since=…, removed_in=…)`.",
        consistency.removal_missing,
    ),
    "removal-order": LintRule(
        "error",
        GRAMMAR["removal-order"],
        '`@deprecated(since="1.4.0", removed_in="1.2.0")`',
        "Announce a release after `since`; the policy is two releases later.",
        consistency.removal_order,
    ),
    "version-syntax": LintRule(
        "error",
        GRAMMAR["version-syntax"],
        '`removed_in="next year"`',
        "Name a release.",
        consistency.version_syntax,
    ),
    "register-missing": LintRule(
        "warning",
        "A project writes its names down in `NAMESPACES.md`.",
        "A project with tools and without that file",
        "Run `folkmoot names doc`.",
        consistency.register_missing,
        standalone="hint",
    ),
    "register-outdated": LintRule(
        "error",
        "`NAMESPACES.md` says what the code says.",
        "A tool that was added after the file was written",
        "Run `folkmoot names doc`.",
        consistency.register_outdated,
        fixable=True,
    ),
    "unreadable": LintRule(
        "error",
        "Every source can be read and parsed.",
        "A file that is not Python",
        "Correct the file, or leave it out with `exclude`.",
        None,
    ),
}
"""Every rule by its id, in the order of the documentation."""


def find_all(project: Project, *, standalone: bool = False) -> list[LintFinding]:
    """Everything found in a project, in the order of its places."""
    found = list(project.unreadable)
    checks = dict.fromkeys(rule.check for rule in RULES.values() if rule.check is not None)
    for check in checks:
        for each in check(project):
            rule = RULES[each.rule]
            severity = (rule.standalone if standalone else None) or rule.severity
            if project.live and rule.live is not None:
                severity = rule.live
            found.append(
                LintFinding(
                    rule=each.rule,
                    severity=severity,
                    message=each.message,
                    place=each.place,
                    name=each.name,
                    lines=each.lines,
                    fix=each.fix,
                )
            )
    order = {name: at for at, name in enumerate(RULES)}
    return sorted(
        found,
        key=lambda each: (
            each.place is not None,
            (each.place.path, each.place.line, each.place.column) if each.place else (),
            order[each.rule],
        ),
    )
