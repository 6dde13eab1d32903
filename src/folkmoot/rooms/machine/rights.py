"""Who holds what in a room: by role, by the room's settings, and by grants that can be taken back.

A grant is bound to accounts, and hangs on what its granter held: on the granter's own rights, by
role or settings, or on grants the granter had received before. When those go, it goes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, Rights, Source, capability
from folkmoot.core.strict import same
from folkmoot.core.uuids import as_stored
from folkmoot.rooms.limits import MAX_GRANT_BYTES, MAX_GRANT_CAPABILITIES, MAX_REASON, RoomBounds
from folkmoot.rooms.machine.model import Role, RoomSettings


class Grant(Struct, frozen=True):
    """What one account gave another. `own` tells which of it the granter held without a grant."""

    id: str
    granter: str
    recipient: str
    recipient_name: str
    capabilities: tuple[Source, ...]
    own: tuple[bool, ...]


class GrantTerms(Struct, frozen=True):
    """What a `capability.grant` or `capability.revoke` says; `grant_id` only in the latter."""

    recipient: str | None
    capabilities: tuple[Source, ...] | None
    grant_id: str | None = None


def read_grant(payload: Mapping[str, Any] | None) -> GrantTerms:
    """The payload of a grant: `{"recipient", "capabilities"}`, and perhaps a reason."""
    asked = _read(payload or {})
    if asked.recipient is None or not asked.capabilities:
        raise e.PayloadInvalid('A grant needs a "recipient" and "capabilities".')
    if _size(asked.capabilities) > MAX_GRANT_BYTES:
        raise e.PayloadInvalid(
            f'"payload.capabilities" may have at most {MAX_GRANT_BYTES:,} bytes.'
        )
    return asked


def read_promise(payload: Mapping[str, Any]) -> GrantTerms:
    """What an invitation says its guest shall hold: nothing, if it does not say."""
    if payload.get("capabilities") is None:
        return GrantTerms(None, None)
    return read_grant({"recipient": "", "capabilities": payload["capabilities"]})


def read_revoke(payload: Mapping[str, Any] | None) -> GrantTerms:
    """The payload of a revocation: `{"grant_id"}`, `{"recipient"}`, or both, and what of it."""
    asked = _read(payload or {})
    if asked.recipient is None and asked.grant_id is None:
        raise e.PayloadInvalid('A revocation needs a "grant_id" or a "recipient".')
    return asked


def _read(payload: Mapping[str, Any]) -> GrantTerms:
    for name in ("recipient", "grant_id", "reason"):
        text = payload.get(name)
        if text is not None and (type(text) is not str or len(text) > MAX_REASON):
            raise e.PayloadInvalid(f'"payload.{name}" must be a string, and not too long.')
    listed = payload.get("capabilities")
    if listed is not None and (
        type(listed) is not list or not 0 < len(listed) <= MAX_GRANT_CAPABILITIES
    ):
        raise e.PayloadInvalid(
            f'"payload.capabilities" must list 1 to {MAX_GRANT_CAPABILITIES} capabilities.'
        )
    capabilities = None if listed is None else tuple(listed)
    return GrantTerms(payload.get("recipient"), capabilities, payload.get("grant_id"))


class Grants:
    """The grants of a room, in the order they were made."""

    def __init__(self, bounds: RoomBounds) -> None:
        self._bounds = bounds
        self._grants: dict[str, Grant] = {}
        self._halted: set[str] = set()
        """Granters who are suspended: what they gave holds again when they are restored."""
        self._given: dict[str, list[Capability]] = {}
        """What accounts were granted and was not taken back, halted or not."""
        self._held = self._given

    def __iter__(self) -> Iterator[Grant]:
        return iter(self._grants.values())

    def given(self, account: str) -> list[Capability]:
        """What was granted to an account and not taken back, also what does not hold now."""
        return self._given.get(account, [])

    def held(self, account: str) -> list[Capability]:
        """What was granted to an account, and holds now."""
        return self._held.get(account, [])

    def in_force(self) -> Iterator[Grant]:
        """The grants that hold now, in the order they were made."""
        if not self._halted:
            yield from self
            return
        held: dict[str, list[Capability]] = {}
        for grant in self:
            if grant.granter in self._halted:
                continue
            compiled = [capability(source) for source in grant.capabilities]
            keeps = _hanging(grant, compiled, held)
            if any(keeps):
                kept = _only(grant, keeps)
                held.setdefault(grant.recipient, []).extend(map(capability, kept.capabilities))
                yield kept

    def halt(self, granter: str) -> set[str]:
        """What someone who is suspended gave holds no more; the accounts that lost by it."""
        self._halted.add(granter)
        return self._hold()

    def go_on(self, granter: str) -> set[str]:
        """What someone gave who was suspended holds again; the accounts that hold more now."""
        self._halted.discard(granter)
        return self._hold()

    def end_of(self, granter: str) -> set[str]:
        """Drop all that someone gave, and what hung on it; the accounts that lost by it."""
        gone = [grant for grant in self if grant.granter == granter]
        for grant in gone:
            del self._grants[grant.id]
        self._halted.discard(granter)
        return {grant.recipient for grant in gone} | self._settle() if gone else set()

    def _hold(self) -> set[str]:
        before, self._held = self._held, self._given
        if self._halted:
            self._held = {}
            for grant in self.in_force():
                compiled = map(capability, grant.capabilities)
                self._held.setdefault(grant.recipient, []).extend(compiled)
        now = self._held
        return {one for one in {*before, *now} if _sources(before, one) != _sources(now, one)}

    def check(
        self, asked: GrantTerms, held: Rights, own: Rights, recipient: str, id_: str | None = None
    ) -> tuple[bool, ...]:
        """Refuse a grant of more than the granter holds; else, which of it is the granter's own."""
        if id_ in self._grants:
            raise e.IdUsed("Another grant of the room has this id.")
        sources = asked.capabilities or ()
        self._check_bounds(sources, recipient)
        compiled = [capability(source) for source in sources]
        for given in compiled:
            if not held.covers(given):
                raise e.GrantExceedsRights(
                    "You can only grant rights that you have.", pattern=given.source
                )
        return tuple(own.covers(given) for given in compiled)

    def _check_bounds(self, sources: tuple[Source, ...], recipient: str) -> None:
        bounds, given = self._bounds, [*self._grants.values()]
        if (
            len(given) >= bounds.grants
            or sum(grant.recipient == recipient for grant in given) >= bounds.grants_each
            or len(self.given(recipient)) + len(sources) > bounds.granted_each
            or sum(map(len, self._given.values())) + len(sources) > bounds.granted
            or sum(_size(grant.capabilities) for grant in given) + _size(sources)
            > bounds.granted_bytes
        ):
            raise e.TooManyOpen("Too many grants.")

    def add(self, grant: Grant) -> None:
        """Let a grant that was checked hold."""
        self._grants[grant.id] = grant
        compiled = [capability(source) for source in grant.capabilities]
        self._given.setdefault(grant.recipient, []).extend(compiled)
        if self._halted:
            self._hold()

    def find(self, asked: GrantTerms, recipient: str | None) -> list[Grant]:
        """What a revocation is about: never nothing."""
        if asked.grant_id is not None:
            # An id that a client chose in capitals is its own; ours are in small letters.
            grant = self._grants.get(asked.grant_id) or self._grants.get(as_stored(asked.grant_id))
            found = [grant] if grant and recipient in (None, grant.recipient) else []
        else:
            found = [grant for grant in self if grant.recipient == recipient]
        wanted = asked.capabilities
        found = [g for g in found if wanted is None or any(map(_among(wanted), g.capabilities))]
        if not found:
            raise e.GrantUnknown("There is no such grant in the room.")
        return found

    def revoke(self, found: Iterable[Grant], asked: GrantTerms) -> set[str]:
        """Take grants back, or some of each, and all that hung on them; the accounts that lost."""
        goes = _among(asked.capabilities) if asked.capabilities is not None else None
        for grant in found:
            keeps = [goes is not None and not goes(source) for source in grant.capabilities]
            self._keep(grant, keeps)
        lost = {grant.recipient for grant in found}
        return lost | self._settle()

    def forget(self, recipient: str) -> set[str]:
        """Drop all grants to an account that is gone for good; the accounts that lost by it."""
        gone = [grant.id for grant in self if grant.recipient == recipient]
        for id_ in gone:
            del self._grants[id_]
        return self._settle() if gone else set()

    def review(self, own_of: Callable[[str], Rights]) -> set[str]:
        """Drop grants that depended on lost rights; returns the accounts that lost some."""
        for grant in [*self._grants.values()]:
            if any(grant.own):
                own = own_of(grant.granter)
                still = zip(grant.own, grant.capabilities, strict=True)
                kept = tuple(had and own.covers(source) for had, source in still)
                self._grants[grant.id] = msgspec.structs.replace(grant, own=kept)
        return self._settle()

    def _keep(self, grant: Grant, keeps: list[bool]) -> None:
        if any(keeps):
            self._grants[grant.id] = _only(grant, keeps)
        else:
            del self._grants[grant.id]

    def _settle(self) -> set[str]:
        """Drop what no longer hangs on anything; the accounts that lost by it.

        Grants are gone through in the order they were made, and each can hang on earlier ones
        alone, so two that were given back and forth cannot hold each other up.
        """
        given: dict[str, list[Capability]] = {}
        self._given = given
        lost: set[str] = set()
        for grant in list(self._grants.values()):
            compiled = [capability(source) for source in grant.capabilities]
            keeps = _hanging(grant, compiled, given)
            if not all(keeps):
                self._keep(grant, keeps)
                lost.add(grant.recipient)
            kept = [each for each, keep in zip(compiled, keeps, strict=True) if keep]
            if kept:
                given.setdefault(grant.recipient, []).extend(kept)
        self._hold()
        return lost


def _hanging(
    grant: Grant, compiled: list[Capability], held: Mapping[str, list[Capability]]
) -> list[bool]:
    """Which of a grant is its granter's own, or among what the granter was given before."""
    source_of = held.get(grant.granter, [])
    return [
        own or any(each.covers(given) for each in source_of)
        for own, given in zip(grant.own, compiled, strict=True)
    ]


def _only(grant: Grant, keeps: list[bool]) -> Grant:
    if all(keeps):
        return grant
    kept = [(s, o) for s, o, k in zip(grant.capabilities, grant.own, keeps, strict=True) if k]
    sources, own = tuple(source for source, _ in kept), tuple(own for _, own in kept)
    return msgspec.structs.replace(grant, capabilities=sources, own=own)


def _sources(held: Mapping[str, list[Capability]], account: str) -> list[Source]:
    return [each.source for each in held.get(account, [])]


def _size(sources: tuple[Source, ...]) -> int:
    return len(msgspec.json.encode(sources))


def _among(wanted: tuple[Source, ...]) -> Any:
    return lambda source: any(same(source, other) for other in wanted)


def own_rights(settings: RoomSettings, role: Role, account: str) -> Rights:
    """Someone's rights without any grant."""
    return Rights((*settings.rights[role], *settings.account_rights.get(account, ())))


def all_rights(own: Rights, granted: Iterable[Capability]) -> Rights:
    """Someone's own and granted rights together."""
    granted = list(granted)
    return Rights((*own.capabilities, *granted)) if granted else own
