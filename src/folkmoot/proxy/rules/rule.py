"""Rule: which messages, and what becomes of them."""

from __future__ import annotations

from typing import Any

from folkmoot.core.ports import Interceptor
from folkmoot.core.verdict import Verdict
from folkmoot.proxy.interceptors.base import Action
from folkmoot.proxy.interceptors.view import Key, View
from folkmoot.proxy.rules.conditions import Condition


class Step:
    """A rule as it is for messages of one key: what is known of them is not asked again."""

    __slots__ = ("_condition", "action", "acts", "guards", "learns", "name")

    def __init__(self, name: str, action: Action, condition: bool | Condition, key: Key) -> None:  # noqa: FBT001
        self.name = name
        self.action = action
        self.learns = action.learns_from(key)
        """Whether the action must be shown the message in any case."""
        self.acts = action.concerns(key) and condition is not False
        self.guards = self.acts and action.guards
        """Whether it only checks."""
        self._condition = condition if isinstance(condition, Condition) else None

    def is_about(self, view: View) -> bool:
        """Whether the action has a word about a message."""
        return self.acts and (self._condition is None or self._condition.holds(view))


class Rule:
    """One rule. Its state, such as what it has counted, lives as long as its source is the same."""

    def __init__(
        self, name: str, source: dict[str, Any], condition: Condition, action: Action
    ) -> None:
        self.name = name
        self.source = source
        self._condition = condition
        self._action = action
        self.methods = None if action.learns else condition.methods
        """The only methods it has to do with; None where there is no telling."""

    @property
    def guards(self) -> bool:
        """Whether it only checks."""
        return self._action.guards

    def for_key(self, key: Key) -> Step | None:
        """The rule for messages of a key; None if it has nothing to do with them."""
        step = Step(self.name, self._action, self._condition.for_key(key), key)
        return step if step.learns or step.acts else None


class Plugin(Action):
    """An interceptor of someone else's, as what a rule does."""

    def __init__(self, interceptor: Interceptor) -> None:
        self._interceptor = interceptor

    async def look(self, view: View) -> Verdict:
        """Ask it; it sees the whole envelope."""
        return await self._interceptor.intercept(view.envelope)
