"""Rules: before which calls a person is asked, as `[asks]` of the settings says.

Of the rules that fit a call, the first counts. Which of them speak of a tool is found once for each
tool, so a call that none speaks of costs one look in a table, however many rules there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.capability import Capability, capability
from folkmoot.core.policy import PrincipalType
from folkmoot.core.tokenbuckets import TokenBuckets

if TYPE_CHECKING:
    from folkmoot.core.kinds import Kind
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Clock
    from folkmoot.settings.backends import AskRule

MAX_TOOLS_KNOWN: Final = 4_096
MAX_COUNTED: Final = 10_000
"""Accounts and rules whose calls are counted; those that called longest ago are forgotten."""
CALLERS: Final = {"people": PrincipalType.PERSON, "agents": PrincipalType.AGENT}


class CompiledRule(Struct, frozen=True, eq=False):
    """A rule, and what it speaks of."""

    rule: AskRule
    what: tuple[Capability, ...]
    who: frozenset[str]

    def fits(self, kind: Kind, payload: Callable[[], Any]) -> bool:
        """Whether it speaks of a call with these arguments; if that is unclear, the call is not
        made without a person.
        """
        unclear = self.rule.verdict != "allow"
        return any(
            each.constraint is None or each.constraint.matches(payload(), if_unclear=unclear)
            for each in self.what
            if each.matches_kind(kind)
        )


class AskRules:
    """The rules of the settings."""

    def __init__(self, clock: Clock, rules: Collection[AskRule] = ()) -> None:
        self._clock = clock
        self._rules = tuple(
            CompiledRule(each, tuple(map(capability, each.what)), frozenset(each.who))
            for each in rules
        )
        self.version = sha256(msgspec.json.encode(list(rules))).hexdigest()[:16]
        """Stands for all of them: what was asked under another one has to be asked again."""
        self._about: dict[str, tuple[CompiledRule, ...]] = {}
        self._used = TokenBuckets[tuple[str, str]](MAX_COUNTED)

    def __len__(self) -> int:
        return len(self._rules)

    def find(
        self,
        principal: Principal,
        kind: Kind,
        payload: Callable[[], Any],
        names: Callable[[Principal], Collection[str]],
        *,
        counts: bool = True,
    ) -> AskRule | None:
        """The rule for a call, if there is one. `names` are the caller's handles and @groups.

        Unless it `counts`, rules about many calls hold as if there had been as many.
        """
        for each in self._speaking_of(kind):
            rule = each.rule
            if rule.callers != "all" and principal.type is not CALLERS[rule.callers]:
                continue
            if each.who and each.who.isdisjoint(names(principal)):
                continue
            if not each.fits(kind, payload):
                continue
            if rule.more_than and counts and not self._exceeds(rule, principal):
                continue
            return rule
        return None

    def _speaking_of(self, kind: Kind) -> tuple[CompiledRule, ...]:
        found = self._about.get(kind.text)
        if found is None:
            if len(self._about) >= MAX_TOOLS_KNOWN:
                self._about.clear()
            found = self._about[kind.text] = tuple(
                each for each in self._rules if any(it.matches_kind(kind) for it in each.what)
            )
        return found

    def _exceeds(self, rule: AskRule, principal: Principal) -> bool:
        """Count a call, and whether it is one too many."""
        key = rule.name, principal.account_id
        now = self._clock.monotonic()
        return self._used.take(key, rule.more_than, rule.seconds, now) > 0
