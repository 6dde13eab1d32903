"""Faults on purpose, for tests: latency and errors, the same ones each time for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    Request,
    Response,
    replace,
)
from folkmoot.core.verdict import CONTINUE, Block, Delay, Mock, Modify, Verdict
from folkmoot.proxy.interceptors.base import Action, Means, MessageView, OptionInvalid, Options

LONGEST: Final = 3600.0
NEVER: Final = 86_400.0
"""How long a dropped message is kept back: longer than any client waits."""
INTERNAL_ERROR: Final = -32603

Probability = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST)]


class LatencyOptions(Options, frozen=True, kw_only=True):
    """How long messages take, and how that is spread."""

    seconds: Seconds
    spread: Seconds = 0.0
    distribution: Literal["fixed", "uniform", "normal", "exponential"] = "fixed"
    seed: int = 0


class AddedLatency(Action):
    """Has each message wait for a time drawn from a distribution."""

    def __init__(self, options: LatencyOptions, _means: Means) -> None:
        drawn = random.Random(options.seed)  # noqa: S311 - the same each time, which is the point
        middle, spread = options.seconds, options.spread
        self._draw: Callable[[], float] = {
            "fixed": lambda: middle,
            "uniform": lambda: drawn.uniform(middle - spread, middle + spread),
            "normal": lambda: drawn.gauss(middle, spread),
            "exponential": lambda: drawn.expovariate(1 / middle) if middle else 0.0,
        }[options.distribution]

    async def look(self, _view: MessageView) -> Verdict:
        """Wait."""
        return Delay(min(LONGEST, max(0.0, self._draw())))


class FaultOptions(Options, frozen=True, kw_only=True):
    """How probable each fault is; together at most 1."""

    error: Probability = 0.0
    drop: Probability = 0.0
    truncate: Probability = 0.0
    disconnect: Probability = 0.0
    message: str = "This failed on purpose."
    seed: int = 0


class Faults(Action):
    """Makes some messages fail."""

    def __init__(self, options: FaultOptions, _means: Means) -> None:
        chances = (
            (options.error, self._error),
            (options.drop, self._drop),
            (options.truncate, self._truncate),
            (options.disconnect, self._disconnect),
        )
        if not 0 < sum(chance for chance, _ in chances) <= 1:
            raise OptionInvalid("'error', 'drop', 'truncate' and 'disconnect' must add up to 0…1")
        self._chances = tuple(each for each in chances if each[0])
        self._message = options.message
        self._drawn = random.Random(options.seed)  # noqa: S311 - as above

    async def look(self, view: MessageView) -> Verdict:
        """Let it pass, or not."""
        drawn = self._drawn.random()
        for chance, fault in self._chances:
            if drawn < chance:
                return fault(view)
            drawn -= chance
        return CONTINUE

    def _error(self, view: MessageView) -> Verdict:
        if isinstance(view.message, Request):
            return Mock(error=ErrorObject(INTERNAL_ERROR, self._message))
        return Block(e.MessageDropped(self._message))

    def _drop(self, _view: MessageView) -> Verdict:
        return Delay(NEVER)

    def _truncate(self, view: MessageView) -> Verdict:
        message = view.message
        if not isinstance(message, Response) or message.result is UNSET:
            return CONTINUE
        return Modify(replace(message, result=truncated(message.result)))

    def _disconnect(self, _view: MessageView) -> Verdict:
        return Block(e.ServerUnreachable("The connection to the server broke, on purpose."))


def truncated(value: Any) -> Any:
    """A value of which each list and text has lost its second half."""
    if isinstance(value, str):
        return value[: len(value) // 2]
    if isinstance(value, list):
        return [truncated(item) for item in value[: (len(value) + 1) // 2]]
    if isinstance(value, dict):
        kept = ("type", "role", "mimeType", "resultType")
        return {name: inner if name in kept else truncated(inner) for name, inner in value.items()}
    return value
