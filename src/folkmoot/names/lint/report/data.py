"""Findings as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from folkmoot.names.lint.model import Declared, Finding, Place, Project


def as_data(project: Project, findings: Sequence[Finding]) -> dict[str, Any]:
    """All that was found, for programs."""
    return {
        "project": {
            "name": project.name,
            "namespace": project.namespace,
            "version": project.version,
            "files": len(project.files),
        },
        "names": [name(each) for each in project.declared],
        "findings": [finding(each) for each in findings],
        "notes": [{"message": each.message, **place(each.place)} for each in project.notes],
    }


def name(each: Declared) -> dict[str, Any]:
    """One name."""
    return {
        "kind": each.kind,
        "name": each.name,
        "deprecated": each.deprecation is not None,
        **place(each.place),
    }


def finding(each: Finding) -> dict[str, Any]:
    """One finding."""
    return {
        "rule": each.rule,
        "severity": each.severity,
        "message": each.message,
        "name": each.name,
        "fixable": each.fix is not None,
        **place(each.place),
    }


def place(where: Place | None) -> dict[str, Any]:
    """Where it is; null for a live server, which has no files."""
    return {
        "path": None if where is None else where.path,
        "line": None if where is None else where.line,
        "column": None if where is None else where.column,
        "end_line": None if where is None else where.end_line,
        "end_column": None if where is None else where.end_column,
    }
