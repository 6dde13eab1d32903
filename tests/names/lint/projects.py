"""Projects to lint, written into a folder."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from folkmoot.names.lint.model import LintFinding, Project
from folkmoot.names.lint.runner import LintOptions, LintRun
from folkmoot.names.lint.sources import read_sources

SERVER = "from fastmcp import FastMCP\n\nmcp = FastMCP('shop')\n\n"


def write(root: Path, files: dict[str, str]) -> Path:
    """The files in a folder, with their common indent taken away."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8", newline="")
    return root


def lint(root: Path, **wishes: Any) -> LintRun:
    """A look at a whole folder."""
    return LintRun([root], LintOptions(**wishes))


def rules(linting: LintRun | list[LintFinding]) -> list[tuple[str, str]]:
    """The findings as rule and name."""
    findings = linting.findings if isinstance(linting, LintRun) else linting
    return [(each.rule, each.name) for each in findings]


def server(root: Path, text: str, **wishes: Any) -> list[tuple[str, str]]:
    """What is found in one server, but for that its names are in no register."""
    write(root, {"server.py": SERVER + dedent(text)})
    wishes = {"ignore": ("register-missing",), **wishes}
    return rules(lint(root, **wishes))


def names(root: Path, text: str) -> list[tuple[str, str]]:
    """What a source declares, as kind and name."""
    return [(each.kind, each.name) for each in project(root, text).declared]


def project(root: Path, text: str) -> Project:
    """A project of one source."""
    write(root, {"server.py": text})
    return read_sources([root])
