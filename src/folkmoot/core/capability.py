"""Capabilities: patterns for kinds, compiled once, and the rights they give a principal.

A pattern is read part by part, like a kind; `*` stands for any run of characters of its part, and
a part that is left out for anything. So a pattern covers what lies below it. `!pattern` denies, and
a deny always wins. `system.*` is the gateway's: nobody else can hold it, not even with `*`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.constraint import Constraint
from folkmoot.core.glob import Glob, glob
from folkmoot.core.kinds import Kind, check_context
from folkmoot.core.limits import (
    MAX_CACHED_VERDICTS,
    MAX_CAPABILITIES,
    MAX_CONSTRAINED,
    MAX_KIND_BYTES,
    MAX_KIND_NAME,
    MAX_METHOD,
)
from folkmoot.core.target import Target

Source: TypeAlias = str | dict[str, Any]
"""How a capability is written: a pattern, or one with a payload constraint, a target, or both."""

_MEMBERS: Final = frozenset(("kind", "payload", "to"))
_NAME = re.compile(r"[a-z0-9*-]+")
_METHOD = re.compile(r"[!-9;-~]+")


class Capability(msgspec.Struct, frozen=True, eq=False):
    """One compiled capability: a glob for each part of a kind, and perhaps what narrows it."""

    source: Source
    denies: bool
    protocol: Glob
    operation: Glob
    method: Glob
    context: Glob
    constraint: Constraint | None = None
    target: Target | None = None

    def matches(self, kind: Kind, payload: Any = None, to: Sequence[str] = ()) -> bool:
        """Whether it speaks of this kind, payload and recipients. Nothing speaks of `system.*`."""
        return (
            self.matches_kind(kind)
            and (self.target is None or self.target.matches(to, if_unclear=self.denies))
            and (
                self.constraint is None or self.constraint.matches(payload, if_unclear=self.denies)
            )
        )

    def matches_kind(self, kind: Kind) -> bool:
        """Whether it speaks of this kind with some payload."""
        return (
            self.protocol.matches(kind.protocol)
            and self.operation.matches(kind.operation)
            and self.method.matches(kind.method or "")
            and self.context.matches(kind.context or "")
            and kind.protocol != "system"
        )

    def covers(self, other: Capability) -> bool:
        """Whether everything the other speaks of is spoken of here."""
        # One by one: what grants hang on is found by many of these.
        return (
            self.method.covers(other.method)
            and self.operation.covers(other.operation)
            and self.protocol.covers(other.protocol)
            and self.context.covers(other.context)
            and (
                self.target is None
                or (other.target is not None and self.target.covers(other.target))
            )
            and (
                self.constraint is None
                or (other.constraint is not None and self.constraint.covers(other.constraint))
            )
        )

    def intersects(self, other: Capability) -> bool:
        """Whether both may speak of one message; payload constraints are taken to agree."""
        if self.target and other.target and not self.target.intersects(other.target):
            return False
        return all(a.intersects(b) for a, b in zip(self._globs(), other._globs(), strict=True))

    def _globs(self) -> tuple[Glob, Glob, Glob, Glob]:
        return self.protocol, self.operation, self.method, self.context


def capability(source: Source | Capability) -> Capability:
    """Compile a capability; whatever is wrong with it is a `CapabilityError`."""
    if isinstance(source, Capability):
        return source
    if isinstance(source, str):
        return _compile(source, source)
    if type(source) is not dict or not {"kind"} <= source.keys() <= _MEMBERS:
        raise e.ConstraintSyntax(
            'A capability is a pattern or {"kind": pattern, "payload": {…}, "to": participant}.'
        )
    if not isinstance(source["kind"], str):
        raise e.PatternSyntax('"kind" must be a pattern.')
    constraint = Constraint(source["payload"]) if "payload" in source else None
    target = Target(source["to"]) if "to" in source else None
    return _compile(source["kind"], source, constraint, target)


def covers(a: Source | Capability, b: Source | Capability) -> bool:
    """Whether the capability `a` allows everything that `b` allows."""
    return capability(a).covers(capability(b))


def _compile(
    text: str,
    source: Source,
    constraint: Constraint | None = None,
    target: Target | None = None,
) -> Capability:
    denies = text.startswith("!")
    pattern = text[1:] if denies else text
    fault = _fault(pattern)
    if fault:
        shown = text if len(text) <= 80 else text[:80] + "…"
        raise e.PatternSyntax(
            f"{shown!r} is not a valid capability pattern: {fault}", pattern=shown
        )
    base, colon, context = pattern.partition(":")
    protocol, operation, method = (*base.split(".", 2), "*", "*")[:3]
    if protocol == "system" and not denies:
        raise e.CapabilityReserved("system.* belongs to the gateway; nobody else can hold it.")
    return Capability(
        source,
        denies,
        glob(protocol),
        glob(operation),
        glob(method),
        glob(context if colon else "*"),
        constraint,
        target,
    )


def _fault(pattern: str) -> str | None:
    """What is wrong with a pattern, if anything is."""
    if len(pattern) > MAX_KIND_BYTES:
        return f"it has more than {MAX_KIND_BYTES:,} characters."
    base, colon, context = pattern.partition(":")
    parts = base.split(".", 2)
    if not all(_NAME.fullmatch(name) and len(name) <= MAX_KIND_NAME for name in parts[:2]):
        return (
            "protocol and operation are lower-case letters, digits, hyphens and *, "
            f"1 to {MAX_KIND_NAME} of them."
        )
    if parts[2:] and not (_METHOD.fullmatch(parts[2]) and len(parts[2]) <= MAX_METHOD):
        return f"the method is printable ASCII without spaces, 1 to {MAX_METHOD} characters."
    if not colon:
        return None
    if len(parts) < 3:
        return "only a pattern with a method can have a context."
    try:
        check_context(context)
    except e.KindError as error:
        return str(error)
    return None


class Rights:
    """What a principal may do: the capabilities it holds, indexed and cached.

    A verdict costs the same however many capabilities there are, save those with a constraint or
    a target, which are few: those that speak of a kind's base are found by index once and kept
    in a bounded cache. Contexts are no part of the cache's key, so made-up ones cannot fill it.
    Rights never change: other rights are another object.
    """

    __slots__ = ("_cache", "_chat_denies", "_denying", "_index", "by_kind_alone", "capabilities")

    by_kind_alone: bool
    """Whether verdicts depend on the kind of a message alone, and not on its payload."""

    def __init__(self, sources: Iterable[Source | Capability] = ()) -> None:
        compiled: list[Capability] = []
        constrained = 0
        for source in sources:
            held = capability(source)
            compiled.append(held)
            constrained += held.constraint.size if held.constraint else 0
            constrained += held.target.size if held.target else 0
            if len(compiled) > MAX_CAPABILITIES or constrained > MAX_CONSTRAINED:
                raise e.TooManyCapabilities(
                    f"At most {MAX_CAPABILITIES:,} capabilities can be held, with at most "
                    f"{MAX_CONSTRAINED} values in their payload constraints and targets."
                )
        self.capabilities = tuple(compiled)
        self._denying = any(held.denies for held in self.capabilities)
        self._chat_denies = tuple(
            held
            for held in self.capabilities
            if held.denies and any(held.intersects(spelling) for spelling in CHAT[:2])
        )
        self.by_kind_alone = not constrained and not self._chat_denies
        self._cache: dict[str, bool | _Undecided] = {}
        self._index: dict[str, list[Capability]] = {}
        for held in self.capabilities:
            self._index.setdefault(_index_key(held), []).append(held)

    @property
    def has_denies(self) -> bool:
        """Whether any of the capabilities denies something."""
        return self._denying

    def __iter__(self) -> Iterator[Source]:
        """The capabilities as they were written."""
        return (held.source for held in self.capabilities)

    def allows(self, kind: Kind, payload: Any = None, to: Sequence[str] = ()) -> bool:
        """Whether an allow speaks of the message and no deny does, in whichever spelling."""
        verdict = self._cache.get(kind.base)
        if verdict is None:
            verdict = self._judge(kind)
        if verdict is not True and (
            verdict is False or not verdict.allows(kind.context or "", payload, to)
        ):
            return False
        return not self._chat_denies or not self._denies_chat(kind, payload, to)

    def allows_all(self, kind: Kind) -> bool:
        """Whether messages of a kind are allowed whatever their payload and their recipients."""
        verdict = self._cache.get(kind.base)
        if verdict is None:
            verdict = self._judge(kind)
        return verdict is True and not self._chat_denies

    def denies(self, kind: Kind, payload: Any = None, to: Sequence[str] = ()) -> bool:
        """Whether a deny speaks of the message, in whichever spelling."""
        return self._denying and (
            any(held.denies and held.matches(kind, payload, to) for held in self._about(kind))
            or self._denies_chat(kind, payload, to)
        )

    def may_allow(self, kind: Kind, to: Sequence[str] = ()) -> bool:
        """Whether an allow speaks of a kind with some payload, and no deny with every payload.

        With `to`, whether it may be for one of these.
        """
        about = [held for held in self._about(kind) if held.matches_kind(kind)]
        return any(
            not held.denies and (held.target is None or held.target.matches(to, if_unclear=True))
            for held in about
        ) and not any(
            held.denies and held.constraint is None and held.target is None for held in about
        )

    def missing(self, kind: Kind, payload: Any = None) -> str:  # noqa: ARG002
        """The scope that a message needs and someone came without; empty where nothing narrows."""
        return ""

    def lists(self, kind: Kind) -> bool:
        """Whether someone is shown what a request of this kind asks for."""
        return self.allows(kind)

    def may_deny(self, kind: Kind) -> bool:
        """Whether a deny speaks of a kind with some payload, in this spelling."""
        return self._denying and any(
            held.denies and held.matches_kind(kind) for held in self._about(kind)
        )

    def covers(self, source: Source | Capability) -> bool:
        """Whether all that a capability allows is held: nobody grants what they do not have.

        One allow must cover it whole and no deny may touch it, nor chat if it is chat. A deny is
        nothing one holds, and would be a weapon in the hands of whoever may grant.
        """
        asked = capability(source)
        if asked.denies:
            return False
        if self._chat_denies and any(asked.intersects(spelling) for spelling in CHAT):
            return False
        return any(
            not held.denies and held.covers(asked) for held in self.capabilities
        ) and not any(held.denies and held.intersects(asked) for held in self.capabilities)

    def _denies_chat(self, kind: Kind, payload: Any, to: Sequence[str]) -> bool:
        said = chat.spellings(kind, payload) if self._chat_denies else ()
        # What the tool says is for everyone, whoever is asked to say it.
        heard = () if kind.operation in ("request", "proposal") else to
        return any(
            held.matches(spelling, spelled, heard)
            for spelling, spelled in said
            for held in self._chat_denies
        )

    def _about(self, kind: Kind) -> Iterator[Capability]:
        for key in (kind.base, kind.root, kind.protocol, ""):
            yield from self._index.get(key, ())

    def _judge(self, kind: Kind) -> bool | _Undecided:
        speaking = [
            held
            for held in self._about(kind)
            if held.protocol.matches(kind.protocol)
            and held.operation.matches(kind.operation)
            and held.method.matches(kind.method or "")
        ]
        verdict = _verdict(speaking) if kind.protocol != "system" else False
        if len(self._cache) >= MAX_CACHED_VERDICTS:
            self._cache.clear()
        self._cache[kind.base] = verdict
        return verdict


CHAT: Final = tuple(capability(pattern) for pattern in chat.PATTERNS)


def _index_key(held: Capability) -> str:
    """The longest literal beginning of a pattern, in whole parts."""
    if not held.protocol.is_literal:
        return ""
    if not held.operation.is_literal:
        return held.protocol.pattern
    base = f"{held.protocol.pattern}.{held.operation.pattern}"
    return f"{base}.{held.method.pattern}" if held.method.is_literal else base


def _verdict(speaking: list[Capability]) -> bool | _Undecided:
    allows = [held for held in speaking if not held.denies]
    denies = [held for held in speaking if held.denies]
    if not allows or any(_always(held) for held in denies):
        return False
    if not denies and any(_always(held) for held in allows):
        return True
    return _Undecided(allows, denies)


def _always(held: Capability) -> bool:
    return held.context.is_any and held.constraint is None and held.target is None


class _Undecided:
    """What is left to ask once the base of a kind is known: context, payload and recipients."""

    __slots__ = (
        "_allow_begins",
        "_allow_names",
        "_allows",
        "_denies",
        "_deny_begins",
        "_deny_names",
    )

    def __init__(self, allows: list[Capability], denies: list[Capability]) -> None:
        self._allow_names, self._allow_begins, self._allows = _split(allows)
        self._deny_names, self._deny_begins, self._denies = _split(denies)

    def allows(self, context: str, payload: Any, to: Sequence[str]) -> bool:
        for matches, constraint, target in self._denies:
            if (
                matches(context)
                and (target is None or target.matches(to, if_unclear=True))
                and (constraint is None or constraint.matches(payload, if_unclear=True))
            ):
                return False
        if context in self._deny_names or context.startswith(self._deny_begins):
            return False
        if context in self._allow_names or context.startswith(self._allow_begins):
            return True
        for matches, constraint, target in self._allows:
            if (
                matches(context)
                and (target is None or target.matches(to))
                and (constraint is None or constraint.matches(payload))
            ):
                return True
        return False


_Narrowed: TypeAlias = tuple[Callable[[str], bool], Constraint | None, Target | None]
_Asked: TypeAlias = tuple[_Narrowed, ...]


def _split(held: list[Capability]) -> tuple[frozenset[str], tuple[str, ...], _Asked]:
    """Plain contexts are looked up, and beginnings compared at once; the rest is gone through."""
    names: set[str] = set()
    begins: set[str] = set()
    asked: list[_Narrowed] = []
    for h in held:
        if h.constraint is not None or h.target is not None:
            asked.append((h.context.matches, h.constraint, h.target))
        elif h.context.is_literal:
            names.add(h.context.pattern)
        elif h.context.beginning is not None:
            begins.add(h.context.beginning)
        else:
            asked.append((h.context.matches, None, None))
    return frozenset(names), tuple(begins), tuple(asked)
