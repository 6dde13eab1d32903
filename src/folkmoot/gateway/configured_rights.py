"""What the settings let people do, by handle, and capabilities as operators type them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import (
    Capability,
    Rights,
    capability,
)
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.limits import MAX_CAPABILITIES, MAX_CONSTRAINED
from folkmoot.gateway.mapping import canonical_pattern
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.names.grammar import RESERVED_NAMES, parse_handle
from folkmoot.names.safe_names import OF_A_BACKEND, full_pattern
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
        "authorization",
        "decide_authorization",
        "device_authorization",
        "decide_device_authorization",
        "passkeys",
        "begin_passkey",
        "begin_presence",
        "add_passkey",
        "rename_passkey",
        "remove_passkey",
        "export_me",
        "my_invites",
        "withdraw_my_invite",
        "connections",
        "begin_connection",
        "finish_connection",
        "forget_connection",
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
)
"""To follow events, each of which is judged by the operation that tells the same; and to read what
one did.
"""
DEFAULTS: Final = (
    "mcp.request.tools/call:msg/*",
    "mcp.request.tools/call:ask/*",
    "mcp.request.tools/call:room/*",
    *OWN,
    *SERVERS,
    *EVENTS,
    *FINDERS,
)
"""What every account may do at the hub."""


class HeldRight(Struct, frozen=True, gc=False):
    """A capability someone holds, and where it is from: which backend or group, or when granted."""

    capability: Capability
    origin: Origin
    name: str = ""
    at: int | None = None


class CapabilitySet(NamedTuple):
    """Capabilities that are given together, and how many values their constraints have."""

    held: tuple[HeldRight, ...] = ()
    constrained: int = 0


NOTHING: Final = CapabilitySet()


class ConfiguredRights:
    """Backends, groups and grants of the settings, compiled; every handle in its one spelling.

    What a group is given is kept once, however many are in it.
    """

    def __init__(self, spec: GatewaySpec) -> None:
        self.namespaces = frozenset(backend.namespace for backend in spec.backends.values())
        self.groups = {name: tuple(handles(who)) for name, who in spec.groups.items()}
        self._common = part(common(spec))
        self._own: dict[str, CapabilitySet] = {}
        self._shared: dict[str, CapabilitySet] = {}
        self._groups_of: dict[str, tuple[str, ...]] = {}
        for name, given in spec.grants.items():
            if name.startswith(GROUP):
                group = name.removeprefix(GROUP)
                self._shared[group] = part(
                    HeldRight(self._meant(it), "group", group) for it in given
                )
            for handle in handles([] if name.startswith(GROUP) else [name]):
                self._own[handle] = part(HeldRight(self._meant(it), "settings") for it in given)
        for group, members in self.groups.items():
            for handle in members:
                self._groups_of[handle] = (*self.groups_of(handle), group)
        told = {name for rule in spec.asks for name in (rule.to, *rule.who)} - {""}
        ruled = {name for name in told if not name.startswith(GROUP)}
        self.named = frozenset(self._own.keys() | self._groups_of.keys() | ruled)
        refuse([*self._impossible(), *self._too_many()])

    @property
    def everyone(self) -> tuple[HeldRight, ...]:
        """The rights of every account."""
        return self._common.held

    def of(self, handle: str) -> tuple[HeldRight, ...]:
        """What is given to a handle by itself or in a group."""
        return tuple(held for part in self._parts(handle) for held in part.held)

    def of_group(self, group: str) -> tuple[HeldRight, ...]:
        """What is given to a group."""
        return self._shared.get(group, NOTHING).held

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

    def _parts(self, handle: str) -> list[CapabilitySet]:
        shared = [self._shared.get(group, NOTHING) for group in self.groups_of(handle)]
        return [self._own.get(handle, NOTHING), *shared]

    def _impossible(self) -> Iterator[str]:
        given = self._own.keys() | self._groups_of.keys()
        for handle in sorted(self.named & (RESERVED_NAMES | self.namespaces)):
            where = f"grants.{handle}" if handle in given else "asks"
            yield f"{where}: nobody can be @{handle}; the name is reserved or a backend's."

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
            except e.CapabilityError as error:
                yield f"grants.{handle}: {error.message}"


def part(held: Iterable[HeldRight]) -> CapabilitySet:
    found = tuple(held)
    constraints = (each.capability.constraint for each in found)
    return CapabilitySet(found, sum(each.size for each in constraints if each is not None))


def common(spec: GatewaySpec) -> Iterator[HeldRight]:
    """The default rights, and those that backends give every account."""
    yield from (HeldRight(capability(pattern), "default") for pattern in DEFAULTS)
    for backend in spec.backends.values():
        if backend.everyone:
            for pattern in OF_A_BACKEND:
                compiled = capability(pattern.format(backend.namespace))
                yield HeldRight(compiled, "everyone", backend.namespace)


def distinct(held: Iterable[HeldRight]) -> dict[str, Capability]:
    """Each capability once, by a key that equal ones share."""
    return {key_of(each.capability.source): each.capability for each in held}


def key_of(source: Any) -> str:
    """A capability as canonical text."""
    if isinstance(source, str):
        return source
    return msgspec.json.encode(source, order="deterministic").decode()


def handles(names: Iterable[str]) -> Iterator[str]:
    """These handles in stored form, each once."""
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
        raise e.SettingsError("\n".join(told), problems=told)


def some_tool(namespace: str) -> Kind:
    """The call of a tool of a server, to ask for rights that all of it needs."""
    return parse(f"mcp.request.{TOOLS_CALL}:{namespace}:-")


PARTS: Final = 3
"""Protocol, operation and method; only a pattern that has all of them can have a context."""

_NAMESPACE = re.compile(r"([a-z][a-z0-9]{2,19}):")
_NOT_IN_NAME = re.compile(r"[^a-z0-9*-]")
_NOT_IN_METHOD = re.compile(r"[^!-9;-~]")
_NOT_IN_CONTEXT = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def compiled(text: str) -> Capability:
    """The capability an operator means; a `PatternSyntax` tells at which character it is wrong."""
    full = full_pattern(text)
    try:
        return capability(full)
    except e.PatternSyntax as error:
        position = fault_at(full)
        raise e.PatternSyntax(
            f"{error.message} The error is at character {position}.",
            **{**error.data, "position": position},
        ) from None


def fault_at(text: str) -> int:
    """The character at which a text stops being a pattern, counted from 1."""
    place = 1 + text.startswith("!")
    base, colon, context = text[place - 1 :].partition(":")
    parts = base.split(".", PARTS - 1)
    for number, part in enumerate(parts, 1):
        wrong = (_NOT_IN_METHOD if number == PARTS else _NOT_IN_NAME).search(part)
        if wrong is not None or not part:
            return place + (wrong.start() if wrong is not None else 0)
        place += len(part) + 1
    if not colon or len(parts) < PARTS:
        return place - 1  # the colon that may not be there, or the end of something too long
    wrong = _NOT_IN_CONTEXT.search(context)
    return place + (wrong.start() if wrong is not None else 0)


def covers_nothing(asked: Capability, namespaces: Iterable[str]) -> str | None:
    """Why a capability speaks of nothing that can be asked of this hub, if it does not."""
    here = sorted(namespaces)
    named = _NAMESPACE.match(asked.context.pattern)
    if asked.denies and (named is None or named[1] in here):
        # Inside rooms a deny of the hub's holds for any kind of message.
        return None
    there_is = [
        *DEFAULTS,
        *(pattern.format(namespace) for namespace in here for pattern in OF_A_BACKEND),
    ]
    if any(asked.intersects(capability(each)) for each in there_is):
        return None
    if named is None or named[1] in here:
        return f"{asked.source} matches nothing that this hub offers."
    near = difflib.get_close_matches(named[1], here, 1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"{asked.source} covers nothing yet: no backend is called {named[1]}{hint}"
