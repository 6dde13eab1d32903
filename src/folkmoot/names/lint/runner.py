"""Runs the linter: reads a project, filters findings, plans fixes, reports JSON and SARIF."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, structs

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.names.generate import namespaces_md
from folkmoot.names.generate.plan import Plan, find_layout, with_ends_of
from folkmoot.names.lint import rules
from folkmoot.names.lint.model import (
    Declared,
    Edit,
    LintFinding,
    Project,
    Severity,
    SourcePlace,
)
from folkmoot.names.lint.modules import parsed
from folkmoot.names.lint.project import SECTION, Config, FileText, FoundProject, SourceUnreadable
from folkmoot.names.lint.rules import RULES
from folkmoot.names.lint.sources import find_project, read_sources

COMMENT: Final = re.compile(r"#\s*folkmoot:\s*ignore(?:\[([^\]\r\n]*)\])?")


def unknown_rule(name: str) -> str | None:
    """The error for an unknown rule; None for a known one."""
    if name in RULES:
        return None
    near = difflib.get_close_matches(name, RULES, 1)
    return f"there is no rule {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def selected(
    findings: Iterable[LintFinding], project: Project, select: Sequence[str], ignore: Sequence[str]
) -> list[LintFinding]:
    """The findings that are selected and not ignored; unreadable files always are."""
    return [
        each
        for each in findings
        if each.rule == "unreadable"
        or (
            (not select or each.rule in select)
            and each.rule not in ignore
            and not is_ignored(each, project)
        )
    ]


def is_ignored(finding: LintFinding, project: Project) -> bool:
    """Whether a comment on the lines of a finding says to ignore it."""
    place = finding.place
    text = project.texts.get(place.path) if place is not None else None
    if place is None or text is None:
        return False
    spans = [(place.line, place.end_line), finding.lines or (place.line, place.line)]
    return any(
        names_rule(comment, finding.rule)
        for first, last in spans
        for comment in ignore_comments(text, first, last)
    )


def ignore_comments(text: FileText, first: int, last: int) -> list[re.Match[str]]:
    """The comments that ask to ignore something, on some lines."""
    start = text.starts[first - 1]
    end = text.starts[last] if last < len(text.starts) else len(text.text)
    return list(COMMENT.finditer(text.text, start, end))


def names_rule(comment: re.Match[str], rule: str) -> bool:
    """Whether a comment is about a rule; one that names none is about all."""
    return comment[1] is None or rule in {each.strip() for each in comment[1].split(",")}


MARK = "\ufeff"


def plan_fixes(
    project: Project,
    findings: Sequence[LintFinding],
    again: Callable[[Mapping[str, str]], Project],
) -> Plan:
    """What of the findings can be mended; nothing is written here.

    `again` reads the project with other texts for some of its files: the register is made from
    names as they will be.
    """
    plan = Plan(project.root)
    texts = fixed_texts(project, findings)
    for path, text in texts.items():
        mark = MARK if project.texts[path].marked else ""
        plan.write(project.root / path, mark + text)
    stale = any(each.rule == "register-outdated" for each in findings)
    if stale or (texts and project.namespaces_md is not None and not project.partial):
        write_register(plan, again(texts))
    return plan


def fixed_texts(project: Project, findings: Iterable[LintFinding]) -> dict[str, str]:
    """The sources that change, by their place; one that would not be Python any more does not."""
    edits: dict[str, list[Edit]] = {}
    for finding in findings:
        # A server that is used alone may keep its names.
        if finding.fix is not None and finding.severity != "hint":
            edits.setdefault(finding.fix.path, []).append(finding.fix)
    fixed = {}
    for path, wanted in edits.items():
        file = project.texts.get(path)
        text = edited(file, wanted) if file is not None and file.encoding == "utf-8" else None
        if text is not None:
            fixed[path] = text
    return fixed


def edited(file: FileText, edits: Iterable[Edit]) -> str | None:
    """The text with the edits in it; None if they overlap, or it could no longer be parsed."""
    ordered = sorted(set(edits), key=lambda each: each.span)
    if any(one.span.end > other.span.start for one, other in pairwise(ordered)):
        return None
    text = file.text
    for each in reversed(ordered):
        text = text[: each.span.start] + each.text + text[each.span.end :]
    try:
        parsed(text)
    except SourceUnreadable:
        return None
    return text


def write_register(plan: Plan, project: Project) -> None:
    """Plan the register of names anew; one that a person wrote without our marks stays theirs."""
    before = project.namespaces_md
    if before is None or not namespaces_md.marked(before) or project.namespace is None:
        return
    try:
        layout = find_layout(project.root)
    except e.ProjectUnusable:
        helper = None
    else:
        helper = None if layout.helper is None else layout.shown(layout.helper)
    text = namespaces_md.render(project, before, helper=helper)
    plan.write(project.root / project.namespaces_file, with_ends_of(before, text))


class LintOptions(Struct, frozen=True, kw_only=True):
    """The options of one run, over the configuration."""

    namespace: str | None = None
    version: str | None = None
    standalone: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def over(self, config: Config) -> Config:
        """The configuration with the wishes in it."""
        return structs.replace(
            config,
            namespace=self.namespace or config.namespace,
            version=self.version or config.version,
            standalone=self.standalone or config.standalone,
            select=self.select or config.select,
            ignore=(*config.ignore, *self.ignore),
        )


class LintRun:
    """One look at a project's sources; `fixes` is what could be written, `again` another look."""

    def __init__(self, paths: Sequence[Path], wishes: LintOptions | None = None) -> None:
        self.paths = paths
        self.found = configured(paths, wishes or LintOptions())
        self.project, self.findings = self._look({})

    def _look(self, instead: Mapping[str, str]) -> tuple[Project, list[LintFinding]]:
        project = self._read(instead)
        return project, judge(project, self.found.config)

    def _read(self, instead: Mapping[str, str]) -> Project:
        return read_sources(self.paths, self.found, instead)

    def fixes(self) -> Plan:
        """What can be mended without judgement; nothing is written yet."""
        return plan_fixes(self.project, self.findings, self._read)

    def again(self) -> None:
        """Look once more, at what was written meanwhile."""
        self.project, self.findings = self._look({})


def configured(paths: Sequence[Path], wishes: LintOptions) -> FoundProject:
    """What is configured where the paths are, with the wishes in it; raises `SettingsError`."""
    found = find_project(paths)
    problems = [
        f"{found.file}: [{SECTION}]: {problem}"
        for name in (*found.config.select, *found.config.ignore)
        if (problem := unknown_rule(name))
    ]
    if problems:
        raise e.SettingsError(problems[0], problems=problems)
    return structs.replace(found, config=wishes.over(found.config))


def judge(project: Project, config: Config) -> list[LintFinding]:
    """What is found in a project, of the rules that are followed."""
    everything = rules.find_all(project, standalone=config.standalone)
    return selected(everything, project, config.select, config.ignore)


def as_data(project: Project, findings: Sequence[LintFinding]) -> dict[str, Any]:
    """All that was found, for programs."""
    return {
        "project": {
            "name": project.name,
            "namespace": project.namespace,
            "version": project.version,
            "files": len(project.files),
        },
        "names": [name_data(each) for each in project.declared],
        "findings": [finding_data(each) for each in findings],
        "notes": [{"message": each.message, **place_data(each.place)} for each in project.notes],
    }


def name_data(each: Declared) -> dict[str, Any]:
    """One name."""
    return {
        "kind": each.kind,
        "name": each.name,
        "deprecated": each.deprecation is not None,
        **place_data(each.place),
    }


def finding_data(each: LintFinding) -> dict[str, Any]:
    """One finding."""
    return {
        "rule": each.rule,
        "severity": each.severity,
        "message": each.message,
        "name": each.name,
        "fixable": each.fix is not None,
        **place_data(each.place),
    }


def place_data(where: SourcePlace | None) -> dict[str, Any]:
    """Where it is; null for a live server, which has no files."""
    return {
        "path": None if where is None else where.path,
        "line": None if where is None else where.line,
        "column": None if where is None else where.column,
        "end_line": None if where is None else where.end_line,
        "end_column": None if where is None else where.end_column,
    }


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "hint": "note"}
ROOT: Final = "ROOT"
"""Paths are told from here, which is wherever the repository is checked out."""
PRINT: Final = "folkmootNames/v1"


def as_sarif(project: Project, findings: Sequence[LintFinding]) -> dict[str, Any]:
    """A log of one run."""
    used = {name: at for at, name in enumerate(RULES)}
    seen: Counter[str] = Counter()
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "folkmoot names",
                        "semanticVersion": __version__,
                        "rules": [sarif_rule(name) for name in RULES],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the project."}}},
                "results": [sarif_result(each, used, seen) for each in findings],
                "invocations": [
                    {
                        "executionSuccessful": not project.unreadable,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {"text": note.message},
                                "locations": [sarif_location(note.place)],
                            }
                            for note in project.notes
                        ],
                    }
                ],
            }
        ],
    }


def sarif_rule(name: str) -> dict[str, Any]:
    """A rule as SARIF describes one."""
    row = RULES[name]
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": row.sentence},
        "fullDescription": {"text": f"{row.sentence} {row.mend}"},
        "help": {"text": f"Wrong: {row.example}\nFix: {row.mend}"},
        "defaultConfiguration": {"level": LEVELS[row.severity]},
    }


def sarif_result(each: LintFinding, used: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    """A finding as SARIF has it."""
    made: dict[str, Any] = {
        "ruleId": each.rule,
        "ruleIndex": used[each.rule],
        "level": LEVELS[each.severity],
        "message": {"text": each.message},
        "partialFingerprints": {PRINT: fingerprint(each, seen)},
    }
    if each.place is not None:
        made["locations"] = [sarif_location(each.place)]
    return made


def sarif_location(place: SourcePlace) -> dict[str, Any]:
    """A place as SARIF has it; one outside of the root is told whole."""
    inside = not place.path.startswith("/")
    uri = quote(place.path) if inside else f"file://{quote(place.path)}"
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    artifact = {"uri": uri, "uriBaseId": ROOT} if inside else {"uri": uri}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def fingerprint(each: LintFinding, seen: Counter[str]) -> str:
    """A fingerprint that stays when lines move; equal findings are numbered."""
    path = "" if each.place is None else each.place.path
    key = "\0".join((each.rule, path, each.name or each.message))
    seen[key] += 1
    whole = f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:32]
