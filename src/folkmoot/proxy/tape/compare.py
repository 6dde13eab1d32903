"""Two tapes side by side: which calls got another answer, and which stand on one of them only.

Calls are the same when method and arguments are; of several equal ones the first belongs to the
first, the second to the second. Ids, tokens of progress and times do not count.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from folkmoot.core.entity import Entity
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.proxy.tape.diff import Difference, differences, kinds_only
from folkmoot.proxy.tape.lines import Header, Line
from folkmoot.proxy.tape.timeline import Moment, moments

What: TypeAlias = Literal[
    "answer", "outcome", "arguments", "only_a", "only_b", "tool_added", "tool_removed",
    "tool_changed",
]  # fmt: skip

NEAR: Final = 100
"""How many calls are tried where none has the same arguments to the letter."""
TOOLS: Final = "$.result.tools"
VOLATILE: Final = ("$.result.requestState", "$.result._meta.progressToken")
"""What a server makes up anew each time."""


class ComparedCall(msgspec.Struct):
    """The compared parts of a request and its answer."""

    seq: int
    from_client: bool
    method: str
    name: str
    params: Any
    """The arguments, without what is not one."""
    said: dict[str, Any] | UnsetType = UNSET
    """The result or the error that came."""
    outcome: str = "no answer"
    """How it ended, in a word or with the number of the error."""
    seconds: float | None = None
    """How long the answer took."""

    @property
    def about(self) -> tuple[bool, str, str]:
        """What is called: whichever side asks, the method and the name."""
        return self.from_client, self.method, self.name

    @classmethod
    def of(cls, request: Moment) -> ComparedCall:
        """A call that is not answered yet."""
        params = request.members.get("params", UNSET)
        if isinstance(params, dict):
            params.pop("_meta", None)
        return cls(request.seq, request.from_client, request.method, request.name, params)

    def answered(self, answer: Moment) -> None:
        """Take the answer."""
        error = answer.members.get("error")
        self.seconds = None if answer.answer is None else answer.answer.seconds
        if "error" in answer.members:
            code = error.get("code") if isinstance(error, dict) else "?"
            self.said, self.outcome = {"error": error}, f"error {code}"
        else:
            self.said = {"result": answer.members.get("result")}
            self.outcome = "tool error" if answer.tool_failed else "result"


class AnswerChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference between two tapes."""

    what: What
    method: str
    name: str
    a: int | None = None
    """The number of the request on the first tape."""
    b: int | None = None
    outcome_a: str = ""
    outcome_b: str = ""
    differences: tuple[Difference, ...] = ()
    """In what they differ: `recorded` is on the first tape, `live` on the second."""
    params: Any = UNSET
    """With what was called what stands on one tape only."""
    seconds_a: float | None = None
    """How long the answer took on the first tape; this makes no difference by itself."""
    seconds_b: float | None = None


class ComparedLatency(msgspec.Struct, frozen=True):
    """How long the answers to one method or tool took on both tapes: medians, in seconds."""

    method: str
    name: str
    calls: int
    a: float
    b: float


class ComparedTape:
    """The calls of a tape, in the order of their requests."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.header: Header | None = None
        self.calls: list[ComparedCall] = []
        waiting: dict[int, ComparedCall] = {}
        for moment in moments(self._noting(lines)):
            if moment.shape == "request":
                waiting[moment.seq] = call = ComparedCall.of(moment)
                self.calls.append(call)
            elif moment.answer is not None and moment.answer.request in waiting:
                waiting.pop(moment.answer.request).answered(moment)

    def _noting(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            if isinstance(line, Header):
                self.header = line
            yield line

    @property
    def key(self) -> str | None:
        """The id of the key that secrets were replaced with."""
        redaction = self.header.redaction if self.header else None
        return redaction.key if redaction else None

    def tools(self) -> dict[str, Any]:
        """The server's tools by name, as last listed."""
        found: dict[str, Any] = {}
        for call in self.calls:
            if call.method == TOOLS_LIST and isinstance(call.said, dict):
                result = call.said.get("result")
                listed = result.get("tools") if isinstance(result, dict) else None
                for tool in listed if isinstance(listed, list) else ():
                    if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                        found[tool["name"]] = tool
        return found


def compare(a: ComparedTape, b: ComparedTape, ignore: Sequence[str] = ()) -> Iterator[AnswerChange]:
    """The differences in the order of the first tape, then what only the second has."""
    one_key = a.key == b.key
    comparison = _Comparison((*ignore, *VOLATILE), one_key=one_key)
    yield from comparison.tools(a.tools(), b.tools())
    pairs, only_b = _aligned(a.calls, b.calls, one_key=one_key)
    for ours, theirs in pairs:
        yield from comparison.calls(ours, theirs)
    for call in only_b:
        yield _only("only_b", call)


def latencies(a: ComparedTape, b: ComparedTape) -> list[ComparedLatency]:
    """How long the calls that are on both tapes took there, by what is called."""
    pairs, _ = _aligned(a.calls, b.calls, one_key=a.key == b.key)
    took: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for ours, theirs in pairs:
        if theirs is not None and ours.seconds is not None and theirs.seconds is not None:
            took[ours.method, ours.name].append((ours.seconds, theirs.seconds))
    found = []
    for (method, name), times in took.items():
        one, other = zip(*times, strict=True)
        found.append(ComparedLatency(method, name, len(times), median(one), median(other)))
    return sorted(found, key=lambda each: -abs(each.b - each.a))


class _Comparison(Entity):
    ignore: Sequence[str]
    one_key: bool

    def tools(self, a: dict[str, Any], b: dict[str, Any]) -> Iterator[AnswerChange]:
        if not a or not b:
            return
        for name in [*a, *(name for name in b if name not in a)]:
            what: What = "tool_changed" if name in a and name in b else "tool_added"
            what = "tool_removed" if name not in b else what
            found = self._differ(a.get(name), b.get(name)) if what == "tool_changed" else ()
            if found or what != "tool_changed":
                yield AnswerChange(what, TOOLS_LIST, name, differences=found)

    def calls(self, a: ComparedCall, b: ComparedCall | None) -> Iterator[AnswerChange]:
        if b is None:
            yield _only("only_a", a)
            return
        _, method, name = a.about
        seqs = a.seq, b.seq
        outcomes = a.outcome, b.outcome
        took: dict[str, Any] = {"seconds_a": a.seconds, "seconds_b": b.seconds}
        asked = self._differ({"params": a.params}, {"params": b.params})
        if asked:
            yield AnswerChange("arguments", method, name, *seqs, differences=asked, **took)
        ignored = (TOOLS,) if method == TOOLS_LIST else ()
        found = self._differ(a.said, b.said, ignored)
        if outcomes[0] != outcomes[1]:
            yield AnswerChange("outcome", method, name, *seqs, *outcomes, found, **took)
        elif found:
            yield AnswerChange("answer", method, name, *seqs, *outcomes, found, **took)

    def _differ(self, a: Any, b: Any, ignored: Sequence[str] = ()) -> tuple[Difference, ...]:
        ignore = (*self.ignore, *ignored)
        return tuple(differences(a, b, ignore, one_key=self.one_key))


def _only(what: What, call: ComparedCall) -> AnswerChange:
    _, method, name = call.about
    seq = call.seq
    return AnswerChange(
        what,
        method,
        name,
        a=seq if what == "only_a" else None,
        b=seq if what == "only_b" else None,
        params=call.params,
    )


def _aligned(
    a: Sequence[ComparedCall], b: Sequence[ComparedCall], *, one_key: bool
) -> tuple[list[tuple[ComparedCall, ComparedCall | None]], list[ComparedCall]]:
    """Each call of the first tape with its like on the second, and what is left over there."""
    waiting: dict[Any, deque[ComparedCall]] = defaultdict(deque)
    for call in b:
        waiting[_key(call, one_key=one_key)].append(call)
    pairs: list[tuple[ComparedCall, ComparedCall | None]] = []
    for call in a:
        alike = waiting.get(_key(call, one_key=one_key))
        pairs.append((call, alike.popleft() if alike else None))
    left = [call for calls in waiting.values() for call in calls]
    left.sort(key=lambda call: call.seq)
    for again in (_alike, _alone):
        found = again([call for call, like in pairs if like is None], left)
        taken = set(map(id, found.values()))
        pairs = [(call, like or found.get(call.seq)) for call, like in pairs]
        left = [call for call in left if id(call) not in taken]
    return pairs, left


def _alike(a: Iterable[ComparedCall], b: Iterable[ComparedCall]) -> dict[int, ComparedCall]:
    """What differs only in secrets that one of the tapes does not hold."""
    by_about: dict[Any, list[ComparedCall]] = defaultdict(list)
    for call in b:
        by_about[call.about].append(call)
    found: dict[int, ComparedCall] = {}
    for call in a:
        near = by_about[call.about]
        for other in near[:NEAR]:
            if not differences(call.params, other.params, one_key=False):
                found[call.seq] = other
                near.remove(other)
                break
    return found


def _alone(a: Iterable[ComparedCall], b: Iterable[ComparedCall]) -> dict[int, ComparedCall]:
    """Calls that are the only ones left of their method and name on both tapes."""
    ours, theirs = _single(a), _single(b)
    return {call.seq: theirs[about] for about, call in ours.items() if about in theirs}


def _single(calls: Iterable[ComparedCall]) -> dict[Any, ComparedCall]:
    by_about: dict[Any, list[ComparedCall]] = defaultdict(list)
    for call in calls:
        by_about[call.about].append(call)
    return {about: found[0] for about, found in by_about.items() if len(found) == 1}


def _key(call: ComparedCall, *, one_key: bool) -> tuple[Any, ...]:
    params = "" if call.params is UNSET else _canonical(call.params)
    return (*call.about, params if one_key else kinds_only(params))


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
