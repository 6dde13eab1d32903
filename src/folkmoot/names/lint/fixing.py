"""What can be mended without judgement: written into the files, all together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate import namespaces_md
from folkmoot.names.generate.layout import find_layout
from folkmoot.names.generate.plan import Plan, with_ends_of
from folkmoot.names.lint.filetext import FileText, Unreadable
from folkmoot.names.lint.model import Edit, Finding, Project
from folkmoot.names.lint.modules import parsed

MARK = "\ufeff"


def plan_fixes(
    project: Project,
    findings: Sequence[Finding],
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


def fixed_texts(project: Project, findings: Iterable[Finding]) -> dict[str, str]:
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
    except Unreadable:
        return None
    return text


def write_register(plan: Plan, project: Project) -> None:
    """Plan the register of names anew; one that a person wrote without our marks stays theirs."""
    before = project.namespaces_md
    if before is None or not namespaces_md.marked(before) or project.namespace is None:
        return
    try:
        layout = find_layout(project.root)
    except ProjectUnusable:
        helper = None
    else:
        helper = None if layout.helper is None else layout.shown(layout.helper)
    text = namespaces_md.render(project, before, helper=helper)
    plan.write(project.root / project.namespaces_file, with_ends_of(before, text))
