"""Subject: what a request asks for, as far as it matters to whoever looks for its answer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

import msgspec

from folkmoot.core.message import Notification, Request
from folkmoot.mcp.wire import (
    DISCOVER,
    INITIALIZE,
    PROMPTS_GET,
    RESOURCES_READ,
    SET_LEVEL,
    SUBSCRIBE,
    TASKS_CANCEL,
    TASKS_GET,
    TASKS_RESULT,
    TOOLS_CALL,
    UNSUBSCRIBE,
)
from folkmoot.proxy.redaction.placeholder import PLACEHOLDER
from folkmoot.proxy.tape.diff import differences
from folkmoot.proxy.tape.places import Pattern, Place


class Mode(Enum):
    """What makes a live request the same as a recorded one."""

    EXACT = "exact"
    """All params are equal, but for the progress token."""
    ARGUMENTS = "arguments"
    """Method, name and arguments are equal; `_meta` does not count."""
    ORDER = "order"
    """The method is the same: its n-th request gets the n-th answer."""


GREETINGS: Final = frozenset((INITIALIZE, DISCOVER))
"""Requests that tell of the client more than they ask: one is as good as another."""
NAMED: Final = {
    TOOLS_CALL: "name",
    PROMPTS_GET: "name",
    RESOURCES_READ: "uri",
    SUBSCRIBE: "uri",
    UNSUBSCRIBE: "uri",
    SET_LEVEL: "level",
    TASKS_GET: "taskId",
    TASKS_RESULT: "taskId",
    TASKS_CANCEL: "taskId",
}
"""The member of the params that says which of a kind is meant."""
WITH_ARGUMENTS: Final = frozenset((TOOLS_CALL, PROMPTS_GET))

_encoder = msgspec.json.Encoder(order="deterministic")


class Subject(msgspec.Struct, frozen=True):
    """What is compared of a request, and the same as bytes that are equal where it is."""

    method: str
    value: Any
    key: bytes

    @property
    def redacted(self) -> bool:
        """Whether something in it was not recorded."""
        return PLACEHOLDER.search(self.key.decode()) is not None

    def fits(self, live: Subject) -> bool:
        """Whether a live request asks for this, whatever stands where a secret was."""
        return self.method == live.method and not differences(self.value, live.value)


def subject_of(request: Request, mode: Mode, ignore: Sequence[Pattern] = ()) -> Subject:
    """What a request asks for, as a mode sees it; what is ignored is left out."""
    if mode is Mode.ORDER or request.method in GREETINGS:
        value: Any = None
    elif mode is Mode.EXACT:
        value = _all_of(request.params)
    else:
        value = _asked_by(request.method, request.params)
    if ignore and value is not None:
        value = _without(value, ("params",), ignore)
    return Subject(request.method, value, _encoder.encode((request.method, value)))


def name_of(message: Request | Notification) -> str:
    """Which tool, prompt or resource a message is about; empty where there is none."""
    member = NAMED.get(message.method)
    params = message.params
    name = params.get(member) if member and isinstance(params, dict) else None
    return name if isinstance(name, str) else ""


def meta_of(message: Request | Notification) -> dict[str, Any]:
    """What a message says about itself."""
    params = message.params
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _without(value: Any, place: Place, ignore: Sequence[Pattern]) -> Any:
    """A value without what is ignored; items of a list keep their places."""
    if isinstance(value, dict):
        return {
            name: _without(member, (*place, name), ignore)
            for name, member in value.items()
            if not any(pattern.covers((*place, name)) for pattern in ignore)
        }
    if isinstance(value, list):
        places = [(*place, number) for number in range(len(value))]
        return [
            None if any(pattern.covers(at) for pattern in ignore) else _without(item, at, ignore)
            for at, item in zip(places, value, strict=True)
        ]
    return value


def _all_of(params: Any) -> Any:
    if not isinstance(params, dict):
        return params if isinstance(params, list) else {}
    meta = params.get("_meta")
    if not isinstance(meta, dict) or "progressToken" not in meta:
        return params
    rest = {name: value for name, value in meta.items() if name != "progressToken"}
    kept = {name: value for name, value in params.items() if name != "_meta"}
    return {**kept, "_meta": rest} if rest else kept


def _asked_by(method: str, params: Any) -> Any:
    if not isinstance(params, dict):
        return params if isinstance(params, list) else {}
    value = {name: each for name, each in params.items() if name != "_meta" and each is not None}
    if method in WITH_ARGUMENTS:
        value.setdefault("arguments", {})
    if isinstance(answers := value.get("inputResponses"), dict):
        # What a person or a model answered is another every time; what they were asked is not.
        value["inputResponses"] = sorted(answers)
    return value
