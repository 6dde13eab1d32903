"""Finds the recorded call that a live request repeats, or says what is nearest to it on the tape.

A `RequestSubject` is what a request asks for, as far as it matters to whoever looks for its answer;
a `Mode` says how far. The `Prompter` remembers how far each recorded call came.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import UNSET, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Notification, Request
from folkmoot.core.redaction import is_secret_name
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
from folkmoot.proxy.jsonpath import JsonPath, Place
from folkmoot.proxy.redaction.placeholders import PLACEHOLDER
from folkmoot.proxy.replay.script import RecordedCall, Script
from folkmoot.proxy.tape.diff import Difference, differences
from folkmoot.telemetry.redaction import MASK, Redactor


class Mode(Enum):
    """When a live request equals a recorded one."""

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


class RequestSubject(msgspec.Struct, frozen=True):
    """The compared part of a request, and its canonical bytes."""

    method: str
    value: Any
    key: bytes

    @property
    def redacted(self) -> bool:
        """Whether something in it was not recorded."""
        return PLACEHOLDER.search(self.key.decode()) is not None

    def fits(self, live: RequestSubject) -> bool:
        """Whether a live request asks for this, whatever stands where a secret was."""
        return self.method == live.method and not differences(self.value, live.value)


def subject_of(request: Request, mode: Mode, ignore: Sequence[JsonPath] = ()) -> RequestSubject:
    """The compared part of a request in a mode, without the ignored paths."""
    if mode is Mode.ORDER or request.method in GREETINGS:
        value: Any = None
    elif mode is Mode.EXACT:
        value = _all_of(request.params)
    else:
        value = _asked_by(request.method, request.params)
    if ignore and value is not None:
        value = _without(value, ("params",), ignore)
    return RequestSubject(request.method, value, _encoder.encode((request.method, value)))


def name_of(message: Request | Notification) -> str:
    """Which tool, prompt or resource a message is about; empty where there is none."""
    member = NAMED.get(message.method)
    params = message.params
    name = params.get(member) if member and isinstance(params, dict) else None
    return name if isinstance(name, str) else ""


def _without(value: Any, place: Place, ignore: Sequence[JsonPath]) -> Any:
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


MOST_COMPARED: Final = 200
"""Recorded calls that are looked at for the nearest."""
MOST_TOLD: Final = 5
LONGEST: Final = 60

_redactor = Redactor()


def not_on_tape(
    request: Request, calls: Sequence[RecordedCall], compared: Callable[[Request], RequestSubject]
) -> e.TapeExhausted:
    """The error for a request that is not on the tape, with what comes nearest to it."""
    asked = told(request)
    data: dict[str, Any] = {"method": request.method, "name": name_of(request)}
    alike = [call for call in calls if call.message.method == request.method]
    if not alike:
        return e.TapeExhausted(
            f"{asked} is not on the tape, and neither is any other {request.method}.", **data
        )
    call, found = _nearest(request, alike, compared)
    data["nearest"] = call.seq
    data["differs"] = [difference.path for difference in found[:MOST_TOLD]]
    shown = "; ".join(map(_told, found[:MOST_TOLD]))
    more = f" and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    return e.TapeExhausted(
        f"{asked} is not on the tape. The nearest is message {call.seq}, "
        f"{told(call.message)}, which differs at {shown}{more}.",
        **data,
    )


def used_up(request: Request, times: int) -> e.TapeExhausted:
    """The error for a request whose recorded answers were all given."""
    often = "once" if times == 1 else f"{times} times"
    return e.TapeExhausted(
        f"{told(request)} is on the tape {often}, and was now asked once more.",
        method=request.method,
        name=name_of(request),
    )


def told(request: Request) -> str:
    """A request in a few words."""
    name = _redactor.redact(name_of(request))
    return f"{request.method} {_short(name)}" if name else request.method


def _nearest(
    request: Request, calls: Sequence[RecordedCall], compared: Callable[[Request], RequestSubject]
) -> tuple[RecordedCall, list[Difference]]:
    name, wanted = name_of(request), _in_place(compared(request))
    named = [call for call in calls if name_of(call.message) == name] or calls
    found = [
        (call, differences(_in_place(compared(call.message)), wanted))
        for call in named[-MOST_COMPARED:]
    ]
    return min(found, key=lambda pair: len(pair[1]))


def _in_place(subject: RequestSubject) -> dict[str, Any]:
    """What is compared where a reader of the message finds it."""
    return {"params": subject.value}


def _told(difference: Difference) -> str:
    recorded, live = _value(difference, difference.recorded), _value(difference, difference.live)
    return f"{difference.path} ({recorded} on the tape, {live} asked)"


def _value(difference: Difference, value: Any) -> str:
    if value is UNSET:
        return "nothing"
    last = difference.path.rpartition(".")[2]
    if is_secret_name(last):
        return MASK
    return _short(_masked(json.dumps(value, ensure_ascii=False, default=str)))


def _masked(text: str) -> str:
    """A text without secrets; placeholders, which are none, stay as they are."""
    between = map(_redactor.redact, PLACEHOLDER.split(text))
    kept = [*PLACEHOLDER.findall(text), ""]
    return "".join(part + placeholder for part, placeholder in zip(between, kept, strict=True))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


class _Group(msgspec.Struct):
    """Calls with the same subject, in order."""

    subject: RequestSubject
    calls: list[RecordedCall]


class Index:
    """A script by what is asked in it; made once, used by every conversation."""

    def __init__(self, script: Script, mode: Mode, ignore: Sequence[str] = ()) -> None:
        self.script = script
        self._mode = mode
        self._ignore = tuple(map(JsonPath.below, ignore))
        self._groups: dict[bytes, _Group] = {}
        self._redacted: dict[str, list[_Group]] = defaultdict(list)
        for call in script.calls:
            subject = self._subject(call.message)
            group = self._groups.get(subject.key)
            if group is None:
                group = self._groups[subject.key] = _Group(subject, [])
                if subject.redacted:
                    self._redacted[subject.method].append(group)
            group.calls.append(call)
        self._cues: dict[str, list[RecordedCall]] = defaultdict(list)
        for cue in script.cues:
            self._cues[cue.message.method].append(cue)

    def groups(self, request: Request) -> list[_Group]:
        """What may be meant by a request, the likeliest first."""
        subject = self._subject(request)
        exactly = self._groups.get(subject.key)
        if exactly is not None:
            return [exactly]
        return [group for group in self._redacted[subject.method] if group.subject.fits(subject)]

    def missing(self, request: Request) -> e.TapeExhausted:
        """The error for a request that nothing is meant by."""
        return not_on_tape(request, self.script.calls, self._subject)

    def _subject(self, request: Request) -> RequestSubject:
        return subject_of(request, self._mode, self._ignore)

    def cues(self, method: str) -> list[RecordedCall]:
        """The recorded notifications of a method."""
        return self._cues.get(method, [])


class Prompter(Entity):
    """Follows one run through a script.

    Equal requests get the recorded answers in turn; when those are used up, the last one again, or
    with `once` none.
    """

    index: Index
    once: bool = False
    asked: set[int] = set[int]()
    """The numbers of the calls that were asked for."""
    _given: Counter[bytes] = field(default_factory=Counter)
    _cued: Counter[str] = field(default_factory=Counter)

    @property
    def script(self) -> Script:
        """What is followed."""
        return self.index.script

    def call_for(self, request: Request) -> RecordedCall:
        """The recorded call that a request stands for; `TapeExhausted` when there is none."""
        groups = self.index.groups(request)
        if not groups:
            raise self.index.missing(request)
        fresh = (group for group in groups if self._given[group.subject.key] < len(group.calls))
        group = next(fresh, groups[-1])
        place = self._given[group.subject.key]
        if place >= len(group.calls) and self.once:
            raise used_up(request, len(group.calls))
        call = group.calls[min(place, len(group.calls) - 1)]
        self._given[group.subject.key] += 1
        self.asked.add(call.seq)
        return call

    def cue_for(self, notification: Notification) -> RecordedCall | None:
        """The recorded notification that a live one stands for: the n-th of its method."""
        cues = self.index.cues(notification.method)
        place = self._cued[notification.method]
        self._cued[notification.method] += 1
        return cues[place] if place < len(cues) else None
