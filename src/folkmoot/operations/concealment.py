"""Conceals secret values in calls of operations, and in their answers, from interceptors.

A row says which of its arguments, and which members of its answer, are secret. Rules, plugins, the
list of held messages and whoever edits one see a mask in their place. What goes on to its service,
or to its client, has the values again wherever the masks still stand. The tape has a redaction of
its own, and needs help only with arguments whose names do not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core.message import (
    Request,
    Response,
    members,
    replace,
)
from folkmoot.core.redaction import is_secret_name
from folkmoot.core.strict import same
from folkmoot.core.verdict import Modify
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.finder import CALL_TOOL
from folkmoot.operations.limits import MIN_SECRET
from folkmoot.operations.table import OPERATIONS
from folkmoot.proxy.chain import Concealed

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.ports import Carried, Recorder

MASK: Final = "[secret]"
NOTE: Final = "folkmoot/secret"
"""Under which a call notes what is secret in its answer."""


def spellings(name: str) -> tuple[str, str]:
    """The names by which an operation can be called."""
    return name, name.replace("/", "_")


SECRET: Final[Mapping[str, frozenset[str]]] = {
    spelled: frozenset(row.secret)
    for row in OPERATIONS
    if row.secret
    for spelled in spellings(row.name)
}
"""What is secret in the calls and answers of an operation, by each of its names."""
UNTOLD: Final[Mapping[str, frozenset[str]]] = {
    name: untold
    for name, secret in SECRET.items()
    if (untold := frozenset(each for each in secret if not is_secret_name(each)))
}
"""The part whose names do not tell a tape that they are secret."""
WRAPPERS: Final = frozenset(spellings(CALL_TOOL))


def conceal(envelope: MessageEnvelope[Any]) -> Concealed | None:
    """A message as interceptors see it; None where it has nothing to conceal."""
    message = envelope.message
    if type(message) is Request:
        shown = conceal_call(message)
        if type(message.params) is dict and (secret := names_in(message.params)):
            envelope.context.notes[NOTE] = secret
        if shown is message:
            return None

        def reveal_call(left: MessageEnvelope[Any]) -> MessageEnvelope[Any]:
            return revealed(envelope, left, "params", restored(message.params, left.message))

        return Concealed(envelope.with_message(shown), reveal_call)
    if type(message) is Response and (names := envelope.context.notes.get(NOTE)):
        values = dict(found_in(message.result, names))
        if not values:
            return None
        masks = {f"[secret:{name}]": value for value, name in values.items()}
        hidden = swapped(message.result, {value: mask for mask, value in masks.items()})

        def reveal_answer(left: MessageEnvelope[Any]) -> MessageEnvelope[Any]:
            result = getattr(left.message, "result", msgspec.UNSET)
            return revealed(envelope, left, "result", swapped(result, masks))

        return Concealed(envelope.with_message(replace(message, result=hidden)), reveal_answer)
    return None


def conceal_call(request: Request, secret: Mapping[str, frozenset[str]] = SECRET) -> Request:
    """A request with masks in place of its secret arguments; itself where it has none."""
    if request.method != TOOLS_CALL or type(request.params) is not dict:
        return request
    params = masked(request.params, secret)
    return request if params is request.params else replace(request, params=params)


class ConcealingRecorder:
    """A recorder for whose tape the arguments are masked that no name tells to be secret."""

    def __init__(self, recorder: Recorder, close: Callable[[], None]) -> None:
        self._recorder: Recorder | None = recorder
        self._close = close

    def commit(self) -> None:
        """Write what was taken."""
        if self._recorder is not None:
            self._recorder.commit()

    def close(self) -> None:
        """End the tape; what is under way still is not on it any more."""
        self._recorder = None
        self._close()

    def note(self, carried: Carried) -> None:
        """Take a message."""
        if self._recorder is None:
            return
        came = carried.envelope.message
        if type(came) is Request and conceal_call(came, UNTOLD) is not came:
            verdict = carried.verdict
            if isinstance(verdict, Modify):
                verdict = Modify(conceal_any(verdict.message))
            carried = msgspec.structs.replace(
                carried,
                envelope=carried.envelope.with_message(conceal_call(came, UNTOLD)),
                at_server=conceal_any(carried.at_server),
                verdict=verdict,
            )
        self._recorder.note(carried)


def conceal_any(message: Any) -> Any:
    """Any message with its secrets masked for a tape."""
    return conceal_call(message, UNTOLD) if type(message) is Request else message


def masked(params: dict[str, Any], secret: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """The name and arguments of a call, with masks; also of one that stands inside another."""
    name, arguments = params.get("name"), params.get("arguments")
    if type(name) is not str or type(arguments) is not dict:
        return params
    if name in WRAPPERS:
        inner = masked(arguments, secret)
        return params if inner is arguments else {**params, "arguments": inner}
    names = secret.get(name, frozenset()).intersection(arguments)
    given = {each: MASK for each in names if arguments[each] not in (None, "")}
    return {**params, "arguments": {**arguments, **given}} if given else params


def restored(params: Any, message: Any) -> Any:
    """The params that interceptors left, with the values again where the masks still stand.

    A call that was turned into another one gets none of them.
    """
    left = getattr(message, "params", msgspec.UNSET)
    return unmasked(params, left) if type(left) is dict else left


def unmasked(params: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    """The arguments with masked values restored, for a call or a call inside a call."""
    name, before, after = params["name"], params["arguments"], left.get("arguments")
    if left.get("name") != name or type(after) is not dict:
        return left
    if name in WRAPPERS:
        return {**left, "arguments": unmasked(before, after)}
    back = {
        each: before[each]
        for each in SECRET.get(name, frozenset()).intersection(before)
        if after.get(each) == MASK
    }
    return {**left, "arguments": {**after, **back}}


def revealed(
    envelope: MessageEnvelope[Any], left: MessageEnvelope[Any], member: str, value: Any
) -> MessageEnvelope[Any]:
    """The message to send on; unchanged, it keeps its original bytes."""
    message = left.message
    if type(message) is type(envelope.message) and getattr(message, member) is not msgspec.UNSET:
        message = replace(message, **{member: value})
    if same(members(message), members(envelope.message)):
        message = envelope.message
    return left.with_message(message)


def names_in(params: dict[str, Any]) -> frozenset[str]:
    """What is secret in the answer to a call, or to the one inside it."""
    name = params.get("name")
    if type(name) is not str:
        return frozenset()
    inner = params.get("arguments")
    if name in WRAPPERS and type(inner) is dict:
        return names_in(inner)
    return SECRET.get(name, frozenset())


def found_in(value: Any, names: frozenset[str]) -> list[tuple[str, str]]:
    """The secret values in an answer with their names, also where it is JSON in a text."""
    if type(value) is str:
        if not value.startswith("{"):
            return []
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return []
    if type(value) is list:
        return [each for item in value for each in found_in(item, names)]
    if type(value) is not dict:
        return []
    found: list[tuple[str, str]] = []
    for name, member in value.items():
        if name in names and type(member) is str and len(member) >= MIN_SECRET:
            found.append((member, name))
        else:
            found += found_in(member, names)
    return found


def swapped(value: Any, words: Mapping[str, str]) -> Any:
    """A value in whose texts some words are others: a token also stands in settings to copy."""
    if type(value) is str:
        for word, other in words.items():
            value = value.replace(word, other)
        return value
    if type(value) is list:
        return [swapped(item, words) for item in value]
    if type(value) is dict:
        return {name: swapped(member, words) for name, member in value.items()}
    return value
