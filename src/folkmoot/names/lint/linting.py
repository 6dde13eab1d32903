"""The linter as a whole: what is configured, what is read, what is found, what is mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from folkmoot.core.errors import SettingsError
from folkmoot.names.generate.plan import Plan
from folkmoot.names.lint import rules
from folkmoot.names.lint.choosing import chosen, unknown_rule
from folkmoot.names.lint.config import SECTION, Config, Found
from folkmoot.names.lint.fixing import plan_fixes
from folkmoot.names.lint.model import Finding, Project
from folkmoot.names.lint.source import find_project, read_sources


class Wishes(Struct, frozen=True, kw_only=True):
    """What whoever runs it asked for, over what is configured."""

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


class Linting:
    """One look at a project's sources; `fixes` is what could be written, `again` another look."""

    def __init__(self, paths: Sequence[Path], wishes: Wishes | None = None) -> None:
        self.paths = paths
        self.found = configured(paths, wishes or Wishes())
        self.project, self.findings = self._look({})

    def _look(self, instead: Mapping[str, str]) -> tuple[Project, list[Finding]]:
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


def configured(paths: Sequence[Path], wishes: Wishes) -> Found:
    """What is configured where the paths are, with the wishes in it; raises `SettingsError`."""
    found = find_project(paths)
    problems = [
        f"{found.file}: [{SECTION}]: {problem}"
        for name in (*found.config.select, *found.config.ignore)
        if (problem := unknown_rule(name))
    ]
    if problems:
        raise SettingsError(problems[0], problems=problems)
    return structs.replace(found, config=wishes.over(found.config))


def judge(project: Project, config: Config) -> list[Finding]:
    """What is found in a project, of the rules that are followed."""
    everything = rules.find(project, standalone=config.standalone)
    return chosen(everything, project, config.select, config.ignore)
