"""What every built-in interceptor is, and what it is made with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import msgspec

from folkmoot.core.policy import Principal
from folkmoot.core.ports import Clock
from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.proxy.interceptors.view import Canonical, Key, View

Groups: TypeAlias = Callable[[Principal], Collection[str]]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options of an interceptor; a table that has others is refused."""


class OptionInvalid(ValueError):
    """An option has a value of the right type that makes no sense."""


class Means(msgspec.Struct, frozen=True):
    """What interceptors are given to work with."""

    clock: Clock
    canonical: Canonical
    groups: Groups | None = None
    """The groups someone is in; None where nobody knows who asks, as in a proxy."""


class Action(ABC):
    """What a rule does with the messages its conditions let through."""

    guards = False
    """Whether it only checks: what is changed later is then shown to it again."""
    learns = False
    """Whether it must see some messages whatever the rule's conditions say."""

    def concerns(self, key: Key) -> bool:  # noqa: ARG002 - the rule, and its exceptions below
        """Whether it has anything to do with such messages at all."""
        return True

    def learns_from(self, key: Key) -> bool:  # noqa: ARG002
        """Which messages it must see."""
        return False

    def learn(self, view: View) -> None:  # noqa: B027 - most have nothing to learn
        """Remember what is needed of a message; its verdict is asked separately."""

    @abstractmethod
    async def look(self, view: View) -> Verdict:
        """What is to become of the message."""

    def look_again(self, _view: View) -> Verdict:
        """What it says, as a guard, of a message that was changed after it looked."""
        return CONTINUE


class Guard(Action):
    """An action that only checks, without waiting for anything, however often it is asked."""

    guards = True

    async def look(self, view: View) -> Verdict:
        """What is to become of the message."""
        return self.check(view)

    def look_again(self, view: View) -> Verdict:
        """The same, of a message that was changed."""
        return self.check(view)

    @abstractmethod
    def check(self, view: View) -> Verdict:
        """Whether the message may go on."""


def shown(name: Any) -> str:
    """A name of someone else's, short and with nothing hidden in it."""
    text = str(name)
    cut = text if len(text) <= 80 else text[:80] + "…"
    return cut if cut.isprintable() else repr(cut)[1:-1]
