"""The running hub, asked about the servers behind it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from folkmoot.cli.running import ANSWER_SECONDS, check_entry, understood
from folkmoot.core.errors import HubNotRunning, SettingsError
from folkmoot.datafolder import Paths
from folkmoot.relay.upstream.model import BackendView, ReloadReport
from folkmoot.settings import Loaded

RELOAD_SECONDS = 60.0


class Views(Struct, frozen=True):
    """All of them."""

    backends: list[BackendView]


class Reloaded(ReloadReport, frozen=True, kw_only=True):
    """What came of reading the settings again; problems when nothing did."""

    problems: list[str] = msgspec.field(default_factory=list)


class ChangedTool(Struct, frozen=True, kw_only=True):
    """A tool that has changed or is new, and waits to be accepted."""

    namespace: str
    name: str
    canonical: str
    changed_hash: str
    since: float
    lines: list[str]
    new: bool = False
    findings: list[str] = msgspec.field(default_factory=list)


class Differences(Struct, frozen=True):
    """Those of one answer, how many there are, and the backends that were not reached yet."""

    tools: list[ChangedTool]
    count: int
    starting: list[str] = msgspec.field(default_factory=list)


class Accepted(Struct, frozen=True):
    """The names of tools that are shown again."""

    accepted: list[str]


class RunningHub:
    """The hub on the data folder that the settings name."""

    def __init__(self, loaded: Loaded) -> None:
        self._paths = Paths(loaded.settings.data_folder)

    @property
    def folder(self) -> str:
        """The data folder."""
        return str(self._paths.folder)

    def views(self) -> list[BackendView]:
        """Every backend; raises `HubNotRunning` when no hub is."""
        return understood(self._ask("backends"), Views).backends

    def reload(self) -> Reloaded:
        """Have it read the settings; raises what is wrong with them."""
        answer = understood(self._ask("backends-reload", timeout=RELOAD_SECONDS), Reloaded)
        if answer.problems:
            raise SettingsError("\n".join(answer.problems), problems=answer.problems)
        return answer

    def differences(self, namespace: str = "") -> Differences:
        """The tools that have changed or are new, of one backend or of all."""
        return understood(self._ask("backends-diff", {"namespace": namespace}), Differences)

    def accept(self, tools: list[ChangedTool]) -> list[str]:
        """Accept these, as they were when they were looked at."""
        wanted = [
            {"namespace": each.namespace, "name": each.name, "changed_hash": each.changed_hash}
            for each in tools
        ]
        return understood(self._ask("backends-accept", {"tools": wanted}), Accepted).accepted

    def _ask(
        self,
        command: str,
        arguments: dict[str, Any] | None = None,
        timeout: float = ANSWER_SECONDS,
    ) -> Any:
        from folkmoot.control import call

        check_entry(self._paths)
        return call(self._paths.control_socket, command, arguments, timeout=timeout)


def views_if_running(hub: RunningHub) -> list[BackendView] | None:
    """Every backend; None when no hub runs."""
    try:
        return hub.views()
    except HubNotRunning:
        return None
