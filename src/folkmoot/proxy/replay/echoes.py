"""Echoes: what a client says back to the server that made it up: cursors, states, task ids."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.message import M, Response, replace

ECHOED: Final = {
    ("requestState",): "requestState",
    ("nextCursor",): "cursor",
    ("task", "taskId"): "taskId",
    ("taskId",): "taskId",
}
"""Where a result holds it, and the member of the params that says it back."""


class Echoes:
    """Puts what the live server made up where the recorded client said back the recorded one."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str], str] = {}

    def learn(self, recorded: Response, live: Response) -> None:
        """Note what the live server calls something that the recorded one had a name for."""
        for path, member in ECHOED.items():
            was, is_now = _at(recorded.result, path), _at(live.result, path)
            if isinstance(was, str) and isinstance(is_now, str) and was != is_now:
                self._live[member, was] = is_now

    def put(self, message: M) -> M:
        """The message as the live server understands it."""
        params = getattr(message, "params", None)
        if not self._live or not isinstance(params, dict):
            return message
        changed = {
            name: self._live[name, value]
            for name, value in params.items()
            if isinstance(value, str) and (name, value) in self._live
        }
        return replace(message, params={**params, **changed}) if changed else message


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
