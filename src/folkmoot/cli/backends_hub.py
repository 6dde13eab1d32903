"""The running hub, asked about the servers behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from folkmoot.cli.operator import ANSWER_SECONDS, ask_running, understood
from folkmoot.core.errors import HubNotRunning
from folkmoot.datafolder import Paths
from folkmoot.relay.upstream.model import BackendView
from folkmoot.settings import Loaded

if TYPE_CHECKING:
    from folkmoot.operations.operator.servers import ChangedTool, ChangedTools, Reloaded

RELOAD_SECONDS = 60.0


class Views(Struct, frozen=True):
    """All of them."""

    backends: list[BackendView]


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
        return understood(self._ask("folkmoot/servers"), Views).backends

    def reload(self) -> Reloaded:
        """Have it read the settings; raises what is wrong with them."""
        from folkmoot.operations.operator.servers import Reloaded

        return understood(self._ask("folkmoot/reload", timeout=RELOAD_SECONDS), Reloaded)

    def differences(self, namespace: str = "") -> ChangedTools:
        """The tools that have changed or are new, of one backend or of all."""
        from folkmoot.operations.operator.servers import ChangedTools

        wanted = {"namespace": namespace or None}
        return understood(self._ask("folkmoot/pins", wanted), ChangedTools)

    def accept(self, tools: list[ChangedTool]) -> list[str]:
        """Accept these, as they were when they were looked at."""
        from folkmoot.operations.operator.servers import AcceptedTools

        wanted = [
            {"namespace": each.namespace, "name": each.name, "changed_hash": each.changed_hash}
            for each in tools
        ]
        answer = self._ask("folkmoot/accept", {"tools": wanted})
        return understood(answer, AcceptedTools).accepted

    def _ask(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        timeout: float = ANSWER_SECONDS,
    ) -> Any:
        return ask_running(self._paths, name, arguments, timeout)


def views_if_running(hub: RunningHub) -> list[BackendView] | None:
    """Every backend; None when no hub runs."""
    try:
        return hub.views()
    except HubNotRunning:
        return None
