"""What is on the tape instead of what was asked for, said in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import UNSET

from folkmoot.core.errors import TapeExhausted
from folkmoot.core.message import Request
from folkmoot.proxy.redaction.placeholder import PLACEHOLDER
from folkmoot.proxy.replay.script import Call
from folkmoot.proxy.replay.subject import Subject, name_of
from folkmoot.proxy.tape.diff import Difference, differences
from folkmoot.telemetry.redaction import MASK, Redactor, is_secret_name

MOST_COMPARED: Final = 200
"""Recorded calls that are looked at for the nearest."""
MOST_TOLD: Final = 5
LONGEST: Final = 60

_redactor = Redactor()


def not_on_tape(
    request: Request, calls: Sequence[Call], compared: Callable[[Request], Subject]
) -> TapeExhausted:
    """The error for a request that is not on the tape, with what comes nearest to it."""
    asked = told(request)
    data: dict[str, Any] = {"method": request.method, "name": name_of(request)}
    alike = [call for call in calls if call.message.method == request.method]
    if not alike:
        return TapeExhausted(
            f"{asked} is not on the tape, and neither is any other {request.method}.", **data
        )
    call, found = _nearest(request, alike, compared)
    data["nearest"] = call.seq
    data["differs"] = [difference.path for difference in found[:MOST_TOLD]]
    shown = "; ".join(map(_told, found[:MOST_TOLD]))
    more = f" and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    return TapeExhausted(
        f"{asked} is not on the tape. The nearest is message {call.seq}, "
        f"{told(call.message)}, which differs at {shown}{more}.",
        **data,
    )


def used_up(request: Request, times: int) -> TapeExhausted:
    """The error for a request whose recorded answers were all given."""
    often = "once" if times == 1 else f"{times} times"
    return TapeExhausted(
        f"{told(request)} is on the tape {often}, and was now asked once more.",
        method=request.method,
        name=name_of(request),
    )


def told(request: Request) -> str:
    """A request in a few words."""
    name = _redactor.redact(name_of(request))
    return f"{request.method} {_short(name)}" if name else request.method


def _nearest(
    request: Request, calls: Sequence[Call], compared: Callable[[Request], Subject]
) -> tuple[Call, list[Difference]]:
    name, wanted = name_of(request), _in_place(compared(request))
    named = [call for call in calls if name_of(call.message) == name] or calls
    found = [
        (call, differences(_in_place(compared(call.message)), wanted))
        for call in named[-MOST_COMPARED:]
    ]
    return min(found, key=lambda pair: len(pair[1]))


def _in_place(subject: Subject) -> dict[str, Any]:
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
