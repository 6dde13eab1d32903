"""RuleSet: all rules in order, as one interceptor.

Rules are found by direction, type and method: a message that no rule is about costs one look into
a table, however many rules there are. Which rules those are is worked out once for each direction,
type and method, at a cost that grows with the rules that name the method and those that name none.
A message that rules are about costs what those rules cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Request, Response, same_id
from folkmoot.core.ports import Interceptor
from folkmoot.core.verdict import CONTINUE, Block, Continue, Delay, Hold, Mock, Modify, Verdict
from folkmoot.proxy.chain import Nested, Ruling, spoken
from folkmoot.proxy.interceptors.base import (
    Action,
    AskedRequest,
    Canonical,
    MessageKey,
    MessageView,
    context_of,
    key_of,
    method_of,
)
from folkmoot.proxy.rules.actions import EXEMPT
from folkmoot.proxy.rules.conditions import Condition


class RuleStep:
    """A rule for messages of one key, without the conditions the key already decides."""

    __slots__ = ("_condition", "action", "acts", "guards", "learns", "name")

    def __init__(
        self,
        name: str,
        action: Action,
        condition: bool | Condition,  # noqa: FBT001 - what became of one
        key: MessageKey,
    ) -> None:
        self.name = name
        self.action = action
        self.learns = action.learns_from(key)
        """Whether the action must be shown the message in any case."""
        self.acts = action.concerns(key) and condition is not False
        self.guards = self.acts and action.guards
        self._condition = condition if isinstance(condition, Condition) else None

    def is_about(self, view: MessageView) -> bool:
        """Whether the action has a word about a message."""
        return self.acts and (self._condition is None or self._condition.holds(view))


class Rule(Entity):
    """One rule; its state, such as counters, lives as long as its source is unchanged."""

    name: str
    source: dict[str, Any]
    condition: Condition
    action: Action

    def __post_init__(self) -> None:
        self.methods = None if self.action.learns else self.condition.methods
        """The only methods it has to do with; None where there is no telling."""

    @property
    def guards(self) -> bool:
        """Whether the rule only checks."""
        return self.action.guards

    def for_key(self, key: MessageKey) -> RuleStep | None:
        """The rule for messages of a key; None if it has nothing to do with them."""
        step = RuleStep(self.name, self.action, self.condition.for_key(key), key)
        return step if step.learns or step.acts else None


class Plugin(Action):
    """A third-party interceptor as the action of a rule."""

    def __init__(self, interceptor: Interceptor) -> None:
        self._interceptor = interceptor

    async def look(self, view: MessageView) -> Verdict:
        """Ask the plugin, which sees the whole envelope."""
        return await self._interceptor.intercept(view.envelope)


MOST_KEYS: Final = 512
"""Directions, types and methods whose rules are kept at hand; made-up methods cannot fill more."""
LONGEST_METHOD: Final = 256

Bucket: TypeAlias = tuple[RuleStep, ...]


class Program:
    """Rules that do not change any more, indexed."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.guards = any(rule.guards for rule in self.rules)
        self._buckets: dict[MessageKey, Bucket] = {}
        self._by_method: dict[str, list[tuple[int, Rule]]] = {}
        self._of_any: list[tuple[int, Rule]] = []
        for numbered in enumerate(self.rules):
            methods = numbered[1].methods
            if methods is None:
                self._of_any.append(numbered)
            for method in methods or ():
                self._by_method.setdefault(method, []).append(numbered)

    def about(self, key: MessageKey) -> Bucket:
        """The rules that may have something to do with messages of a key, in order."""
        bucket = self._buckets.get(key)
        if bucket is None:
            candidates = [*self._by_method.get(key.method, ()), *self._of_any]
            candidates.sort(key=itemgetter(0))
            steps = (rule.for_key(key) for _, rule in candidates)
            bucket = tuple(step for step in steps if step is not None)
            if len(self._buckets) >= MOST_KEYS:
                self._buckets.clear()
            if len(key.method) <= LONGEST_METHOD:
                self._buckets[key] = bucket
        return bucket


class RuleSet(Nested):
    """The rules of one file. What they are can be swapped while messages pass.

    A message that waits goes on with the rules it came under.
    """

    def __init__(self, rules: Sequence[Rule], canonical: Canonical, name: str = "rules") -> None:
        self.name = name
        self._canonical = canonical
        self._program = Program(rules)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._program.rules

    @property
    def guards(self) -> bool:
        """Whether any of the rules only checks."""
        return self._program.guards

    def swap(self, rules: Sequence[Rule]) -> None:
        """Go by other rules from the next message on."""
        self._program = Program(rules)

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        """The last word about a message, for those who know nothing of lists in lists.

        One that waits and has more rules to pass cannot be told in one word, and is stopped.
        """
        ruling = await self.judge(envelope)
        if isinstance(ruling.verdict, Delay | Hold):
            return Block(
                e.BlockedByInterceptor(f"{ruling.by} has the message wait, but it cannot.")
            )
        passes = isinstance(ruling.verdict, Continue)
        return Modify(ruling.envelope.message) if passes and ruling.changed else ruling.verdict

    async def judge(self, envelope: MessageEnvelope[Any]) -> Ruling:
        """Show a message to the rules that concern it, until one stops or holds it."""
        program = self._program
        if not program.rules:
            return Ruling(envelope)
        message = envelope.message
        asked: AskedRequest | None = None
        method = method_of(message)
        if type(message) is Request:
            context = context_of(method, message.params, self._canonical)
            envelope.context.notes[self] = AskedRequest(method, context)
        elif type(message) is Response:
            asked = envelope.context.notes.get(self)
            method = asked.method if asked is not None else ""
        key = key_of(envelope, method)
        bucket = program.about(key)
        if not bucket:
            return Ruling(envelope)
        view = MessageView(envelope, key, asked, self._canonical)
        return await self._go_on(bucket, view, 0, Ruling(envelope))

    async def look_again(self, envelope: MessageEnvelope[Any]) -> Ruling | None:
        """What the rules that only check say of a message that was changed since."""
        message = envelope.message
        asked: AskedRequest | None = None
        method = method_of(message)
        if type(message) is Response:
            asked = envelope.context.notes.get(self)
            method = asked.method if asked is not None else ""
        key = key_of(envelope, method)
        bucket = self._program.about(key)
        return recheck(bucket, MessageView(envelope, key, asked, self._canonical))

    async def _go_on(self, bucket: Bucket, view: MessageView, first: int, so_far: Ruling) -> Ruling:
        by, changed = so_far.by, so_far.changed
        for place in range(first, len(bucket)):
            step = bucket[place]
            if step.learns:
                step.action.learn(view)
            if not step.is_about(view):
                continue
            verdict = await spoken(step.name, step.action.look(view), view.message)
            if isinstance(verdict, Modify):
                verdict = _kept(step, view, verdict)
            if verdict is EXEMPT:
                break
            if isinstance(verdict, Continue):
                continue
            if isinstance(verdict, Modify):
                view, by, changed = view.changed(verdict.message), step.name, True
                stopped = recheck(bucket[:place], view)
                if stopped is not None:
                    return stopped
                continue
            rest = None
            if isinstance(verdict, Delay | Hold):
                going = Ruling(view.envelope, CONTINUE, by, changed)
                rest = partial(self._resume, bucket, view, place + 1, going)
            return Ruling(view.envelope, verdict, step.name, changed, rest=rest)
        return Ruling(view.envelope, CONTINUE, by, changed)

    async def _resume(
        self,
        bucket: Bucket,
        view: MessageView,
        first: int,
        so_far: Ruling,
        envelope: MessageEnvelope[Any],
    ) -> Ruling:
        """Go on with a message that has waited, and may have been edited meanwhile."""
        if envelope.message is not view.message:
            view = view.changed(envelope.message)
            stopped = recheck(bucket[:first], view)
            if stopped is not None:
                return stopped
            so_far = Ruling(view.envelope, CONTINUE, bucket[first - 1].name, changed=True)
        return await self._go_on(bucket, view, first, so_far)


def recheck(bucket: Bucket, view: MessageView) -> Ruling | None:
    """The ruling of the checking rules on a changed message, if they stop it."""
    for step in bucket:
        if step.guards and step.is_about(view):
            verdict = step.action.look_again(view)
            if verdict is EXEMPT:
                return None
            if isinstance(verdict, Block | Mock):
                return Ruling(view.envelope, verdict, step.name, changed=True)
    return None


def _kept(step: RuleStep, view: MessageView, verdict: Modify) -> Verdict:
    """The verdict, if the message is still the same question, answer or notice.

    Another method would be the business of other rules, which would never see it.
    """
    old, new = view.message, verdict.message
    if (
        type(old) is type(new)
        and same_id(getattr(old, "id", None), getattr(new, "id", None))
        and method_of(old) == method_of(new)
    ):
        return verdict
    return Block(
        e.BlockedByInterceptor(f"{step.name} made another message of it, which it may not.")
    )
