"""What the settings let people do: read once, and asked by handle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.accounts import RESERVED, parse_handle
from folkmoot.core.capability import (
    MAX_CAPABILITIES,
    MAX_CONSTRAINED,
    Capability,
    Rights,
    capability,
)
from folkmoot.core.errors import CapabilityError, SettingsError
from folkmoot.core.kinds import Kind, parse
from folkmoot.gateway.mapping import canonical_pattern
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.names.wire import OF_A_BACKEND
from folkmoot.settings.backends import GatewaySpec

Origin: TypeAlias = Literal["default", "everyone", "group", "settings", "granted"]

GROUP: Final = "@"
"""Begins a name in `[grants]` that is a group's."""

FINDERS: Final = (
    "mcp.request.tools/call:folkmoot/find_tool",
    "mcp.request.tools/call:folkmoot/call_tool",
)
"""To look for tools opens none: what is found, and what is called there, is judged by its name."""
OWN: Final = tuple(
    f"mcp.request.tools/call:folkmoot/{name}"
    for name in (
        "tokens",
        "create_token",
        "revoke_token",
        "create_code",
        "export_me",
        "my_invites",
        "withdraw_my_invite",
    )
)
"""One's own tokens, data and invitations. Only the first is a tool: people ask for the others."""
SERVERS: Final = tuple(
    f"mcp.request.tools/call:folkmoot/{name}" for name in ("my_servers", "my_tools", "try_tool")
)
"""The servers that one may use; each call of a tool is judged by the tool's name."""
EVENTS: Final = (
    "mcp.request.tools/call:folkmoot/events",
    "mcp.request.tools/call:folkmoot/activity",
    "mcp.request.tools/call:folkmoot/asks",
    "mcp.request.tools/call:folkmoot/decisions",
)
"""To follow events, each of which is judged by the operation that tells the same; and to read what
one did.
"""
DEFAULTS: Final = (
    "mcp.request.tools/call:msg/*",
    "mcp.request.tools/call:room/*",
    *OWN,
    *SERVERS,
    *EVENTS,
    *FINDERS,
)
"""What every account may do at the hub."""


class Held(Struct, frozen=True, gc=False):
    """A capability someone holds, and where it is from: which backend or group, or when granted."""

    capability: Capability
    origin: Origin
    name: str = ""
    at: int | None = None


class Part(NamedTuple):
    """Capabilities that are given together, and how many values their constraints have."""

    held: tuple[Held, ...] = ()
    constrained: int = 0


NOTHING: Final = Part()


class Settled:
    """Backends, groups and grants of the settings, compiled; every handle in its one spelling.

    What a group is given is kept once, however many are in it.
    """

    def __init__(self, spec: GatewaySpec) -> None:
        self.namespaces = frozenset(backend.namespace for backend in spec.backends.values())
        self.groups = {name: tuple(handles(who)) for name, who in spec.groups.items()}
        self._common = part(common(spec))
        self._own: dict[str, Part] = {}
        self._shared: dict[str, Part] = {}
        self._groups_of: dict[str, tuple[str, ...]] = {}
        for name, given in spec.grants.items():
            if name.startswith(GROUP):
                group = name.removeprefix(GROUP)
                self._shared[group] = part(Held(self._meant(it), "group", group) for it in given)
            for handle in handles([] if name.startswith(GROUP) else [name]):
                self._own[handle] = part(Held(self._meant(it), "settings") for it in given)
        for group, members in self.groups.items():
            for handle in members:
                self._groups_of[handle] = (*self.groups_of(handle), group)
        self.named = frozenset(self._own.keys() | self._groups_of.keys())
        refuse([*self._impossible(), *self._too_many()])

    @property
    def everyone(self) -> tuple[Held, ...]:
        """What everyone holds who has an account."""
        return self._common.held

    def of(self, handle: str) -> tuple[Held, ...]:
        """What is given to a handle by itself or in a group."""
        return tuple(held for part in self._parts(handle) for held in part.held)

    def groups_of(self, handle: str) -> tuple[str, ...]:
        """The groups a handle is in."""
        return self._groups_of.get(handle, ())

    def _meant(self, given: Any) -> Capability:
        """The capability of an entry of `[grants]`, its URI in whichever spelling."""
        if isinstance(given, str):
            return capability(canonical_pattern(given, self.namespaces))
        kind = given.get("kind") if isinstance(given, dict) else None
        if isinstance(kind, str):
            return capability({**given, "kind": canonical_pattern(kind, self.namespaces)})
        return capability(given)

    def _parts(self, handle: str) -> list[Part]:
        shared = [self._shared.get(group, NOTHING) for group in self.groups_of(handle)]
        return [self._own.get(handle, NOTHING), *shared]

    def _impossible(self) -> Iterator[str]:
        for handle in sorted(self.named & (RESERVED | self.namespaces)):
            yield f"grants.{handle}: nobody can be @{handle}; the name is reserved or a backend's."

    def _too_many(self) -> Iterator[str]:
        for handle in sorted(self.named):
            parts = [self._common, *self._parts(handle)]
            many = sum(len(part.held) for part in parts)
            constrained = sum(part.constrained for part in parts)
            # To compile the rights of thousands takes seconds, and hardly anyone is near a limit.
            if many <= MAX_CAPABILITIES and constrained <= MAX_CONSTRAINED:
                continue
            try:
                Rights(distinct((*self.everyone, *self.of(handle))).values())
            except CapabilityError as error:
                yield f"grants.{handle}: {error.message}"


def part(held: Iterable[Held]) -> Part:
    """Capabilities that are given together."""
    found = tuple(held)
    constraints = (each.capability.constraint for each in found)
    return Part(found, sum(each.size for each in constraints if each is not None))


def common(spec: GatewaySpec) -> Iterator[Held]:
    """What everyone holds who has an account."""
    yield from (Held(capability(pattern), "default") for pattern in DEFAULTS)
    for backend in spec.backends.values():
        if backend.everyone:
            for pattern in OF_A_BACKEND:
                compiled = capability(pattern.format(backend.namespace))
                yield Held(compiled, "everyone", backend.namespace)


def distinct(held: Iterable[Held]) -> dict[str, Capability]:
    """Each capability once, by a key that is the same for equal ones."""
    return {key_of(each.capability.source): each.capability for each in held}


def key_of(source: Any) -> str:
    """A capability as text: two that are the same have the same."""
    if isinstance(source, str):
        return source
    return msgspec.json.encode(source, order="deterministic").decode()


def handles(names: Iterable[str]) -> Iterator[str]:
    """These handles as they are stored, each once."""
    return iter(dict.fromkeys(filter(None, map(parse_handle, names))))


def may_use(rights: Rights, namespace: str) -> bool:
    """Whether someone may use any of a backend."""
    if rights.missing(some_tool(namespace)):
        return False
    for pattern in OF_A_BACKEND:
        whole = capability(pattern.format(namespace))
        about = [held for held in rights.capabilities if held.intersects(whole)]
        denied = any(held.denies and held.covers(whole) for held in about)
        if not denied and any(not held.denies for held in about):
            return True
    return False


def refuse(problems: Iterable[str]) -> None:
    """Raise what is wrong, all of it at once."""
    if told := list(problems):
        raise SettingsError("\n".join(told), problems=told)


@lru_cache(maxsize=1024)
def some_tool(namespace: str) -> Kind:
    """The call of a tool of a server, to ask for rights that all of it needs."""
    return parse(f"mcp.request.{TOOLS_CALL}:{namespace}:-")
