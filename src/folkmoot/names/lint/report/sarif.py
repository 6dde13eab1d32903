"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from folkmoot import __version__
from folkmoot.names.lint.model import Finding, Place, Project, Severity
from folkmoot.names.lint.rules import RULES

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "hint": "note"}
ROOT: Final = "ROOT"
"""Paths are told from here, which is wherever the repository is checked out."""
PRINT: Final = "folkmootNames/v1"


def as_sarif(project: Project, findings: Sequence[Finding]) -> dict[str, Any]:
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
                        "rules": [rule(name) for name in RULES],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the project."}}},
                "results": [result(each, used, seen) for each in findings],
                "invocations": [
                    {
                        "executionSuccessful": not project.unreadable,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {"text": note.message},
                                "locations": [location(note.place)],
                            }
                            for note in project.notes
                        ],
                    }
                ],
            }
        ],
    }


def rule(name: str) -> dict[str, Any]:
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


def result(each: Finding, used: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    """A finding as SARIF has it."""
    made: dict[str, Any] = {
        "ruleId": each.rule,
        "ruleIndex": used[each.rule],
        "level": LEVELS[each.severity],
        "message": {"text": each.message},
        "partialFingerprints": {PRINT: fingerprint(each, seen)},
    }
    if each.place is not None:
        made["locations"] = [location(each.place)]
    return made


def location(place: Place) -> dict[str, Any]:
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


def fingerprint(each: Finding, seen: Counter[str]) -> str:
    """The same for the same finding when lines move: it counts those that are alike."""
    path = "" if each.place is None else each.place.path
    key = "\0".join((each.rule, path, each.name or each.message))
    seen[key] += 1
    whole = f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:32]
