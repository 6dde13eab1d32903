"""Actions: what a rule does by itself, without an interceptor."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Response, message_from
from folkmoot.core.verdict import CONTINUE, Block, Continue, Delay, Hold, Mock, Modify, Verdict
from folkmoot.proxy.interceptors.base import (
    REQUEST,
    Action,
    Guard,
    MessageKey,
    MessageView,
    OptionInvalid,
    Options,
)
from folkmoot.proxy.interceptors.faults import LONGEST
from folkmoot.proxy.interceptors.redact import editable
from folkmoot.proxy.jsonpath import MISSING, JsonPath

EXEMPT: Final = Continue()
"""Let the message go on, past all further rules."""
LONGEST_HELD: Final = 7 * 86_400.0


class NoOptions(Options, frozen=True, kw_only=True):
    """None."""


class Exempts(Guard):
    """`continue`: later rules do not apply to these messages."""

    def __init__(self, _options: NoOptions, _rule: str) -> None:
        pass

    def check(self, _view: MessageView) -> Verdict:
        """Let it go past all further rules."""
        return EXEMPT


class BlockOptions(Options, frozen=True, kw_only=True):
    """The error for the caller of a blocked request."""

    message: Annotated[str, Meta(min_length=1, max_length=1000)] = "This is not allowed here."
    code: int | None = None


class Blocks(Guard):
    """`block`: the message is stopped, with an error."""

    def __init__(self, options: BlockOptions, rule: str) -> None:
        self._message = options.message
        self._code = options.code
        self._rule = rule

    def check(self, _view: MessageView) -> Verdict:
        """Stop it."""
        error = e.BlockedByInterceptor(self._message, rule=self._rule)
        if self._code is not None:
            # The number is the class's; this one error is told with another.
            vars(error)["jsonrpc"] = self._code
        return Block(error)


class MockError(Options, frozen=True, kw_only=True):
    """A JSON-RPC error."""

    code: int
    message: str
    data: Any = UNSET


class MockOptions(Options, frozen=True, kw_only=True):
    """The answer: a result or an error."""

    result: Any = UNSET
    error: MockError | UnsetType = UNSET


class Mocks(Action):
    """`mock`: the request is answered here, and not passed on."""

    def __init__(self, options: MockOptions, _rule: str) -> None:
        if (options.result is UNSET) is (options.error is UNSET):
            raise OptionInvalid("needs either 'result' or 'error'")
        error = options.error
        if isinstance(error, MockError):
            self._answer = Mock(error=ErrorObject(error.code, error.message, error.data))
        else:
            self._answer = Mock(result=options.result)

    def concerns(self, key: MessageKey) -> bool:
        """Only requests are answered."""
        return key.root == REQUEST

    async def look(self, _view: MessageView) -> Verdict:
        """Answer it."""
        return self._answer


class ModifyOptions(Options, frozen=True, kw_only=True):
    """What is put at which paths, and what is taken out."""

    set: dict[str, Any] = msgspec.field(default_factory=dict)
    remove: tuple[str, ...] = ()


class Modifies(Action):
    """`modify`: the message goes on with other values."""

    def __init__(self, options: ModifyOptions, _rule: str) -> None:
        if not options.set and not options.remove:
            raise OptionInvalid("needs 'set' or 'remove'")
        self._edits: list[tuple[JsonPath, Callable[[Any], Any]]] = [
            (editable(text), _putting(value)) for text, value in options.set.items()
        ]
        self._edits += [(editable(text), lambda _value: MISSING) for text in options.remove]
        if any(len(path.steps) < 2 for path, _ in self._edits):
            raise OptionInvalid("a path must lead into $.params, $.result or $.error")

    async def look(self, view: MessageView) -> Verdict:
        """Change the message, if it has the member to change."""
        body = view.body
        creates = not isinstance(view.message, Response)
        for path, change in self._edits:
            if path.root in body or (creates and path.root == "params"):
                body = path.edit(body, change)
        return CONTINUE if body is view.body else Modify(message_from(body))


def _putting(value: Any) -> Callable[[Any], Any]:
    # A copy each time: nobody who changes it in place is to change the rule.
    return lambda _old: msgspec.json.decode(msgspec.json.encode(value))


class DelayOptions(Options, frozen=True, kw_only=True):
    """How long, or between how long and how long."""

    seconds: float | tuple[float, ...]
    seed: int | None = None


class Delays(Action):
    """`delay`: the message goes on later."""

    def __init__(self, options: DelayOptions, _rule: str) -> None:
        given = options.seconds
        seconds = given if isinstance(given, tuple) else (given, given)
        if len(seconds) != 2 or not 0 <= seconds[0] <= seconds[1] <= LONGEST:
            raise OptionInvalid(
                f"'seconds' must be a time from 0 to {LONGEST:g}, or [shortest, longest]"
            )
        self._least, self._most = seconds
        self._drawn = random.Random(options.seed)  # noqa: S311 - spreads delays, keeps no secret

    async def look(self, _view: MessageView) -> Verdict:
        """Have it wait."""
        return Delay(self._drawn.uniform(self._least, self._most))


class HoldOptions(Options, frozen=True, kw_only=True):
    """Why, and for how long at most."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    seconds: Annotated[float, Meta(gt=0, le=LONGEST_HELD)] | None = None


class Holds(Action):
    """`hold`: the message waits until someone decides."""

    def __init__(self, options: HoldOptions, _rule: str) -> None:
        self._hold = Hold(options.reason, options.seconds)

    async def look(self, view: MessageView) -> Verdict:
        """Have it wait for a decision."""
        if view.asked is None:
            return self._hold
        return msgspec.structs.replace(self._hold, method=view.key.method, tool=view.tool or "")


class ActionType(msgspec.Struct, frozen=True):
    """One action a rule may name."""

    does: str
    options: type[Options]
    make: Callable[[Any, str], Action]


ACTIONS: Final = {
    "continue": ActionType("lets it go on; no further rule looks at it", NoOptions, Exempts),
    "modify": ActionType("lets it go on with other values", ModifyOptions, Modifies),
    "block": ActionType("stops it, with an error", BlockOptions, Blocks),
    "mock": ActionType("answers the request, and does not pass it on", MockOptions, Mocks),
    "delay": ActionType("lets it go on later", DelayOptions, Delays),
    "hold": ActionType("keeps it until someone decides", HoldOptions, Holds),
}
