"""What someone asks a room to be: read from plain JSON, every field checked and named if wrong.

A change is read as JSON Merge Patch (RFC 7396) has it: what is left out stays, null goes back to
the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.accounts.handles import parse_handle
from folkmoot.core.capability import Rights, Source
from folkmoot.core.errors import ArgumentInvalid, CapabilityError, RoomNameInvalid
from folkmoot.rooms.backends import read_backends
from folkmoot.rooms.model import ACCESS, Access, RoomPolicy

ROOM_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

MOST_PATTERNS: Final = 64
MOST_GRANTED: Final = 256
MAX_RIGHTS_BYTES: Final = 65_536
"""What the capabilities and grants of a room may have in JSON: they are read with every room."""

Capabilities: TypeAlias = tuple[Source, ...]

_POLICY: Final = {field.name: field for field in msgspec.structs.fields(RoomPolicy)}
_NUMBERS: Final[Mapping[type, str]] = {int: "a whole number", float: "a number"}


class RoomSpec(Struct, frozen=True):
    """A room to be made; `grants` are by handle."""

    name: str
    access: Access = "open"
    durable: bool = True
    capabilities: Capabilities | None = None
    grants: dict[str, Capabilities] = {}
    policy: RoomPolicy = RoomPolicy()
    backends: tuple[str, ...] = ()


class RoomPatch(Struct, frozen=True):
    """What is to change of a room; what stays is unset."""

    access: Access | UnsetType = UNSET
    capabilities: Capabilities | UnsetType | None = UNSET
    grants: dict[str, Capabilities | None] = {}
    """By handle; None takes away what the handle's account holds by the room."""
    policy: dict[str, Any] = {}
    backends: tuple[str, ...] | UnsetType = UNSET

    def change_policy(self, policy: RoomPolicy) -> RoomPolicy:
        """The policy with what is to change of it."""
        return msgspec.structs.replace(policy, **self.policy)


def check_name(name: str) -> str:
    """Refuse a name that no room can have."""
    if not ROOM_NAME.fullmatch(name):
        raise RoomNameInvalid(
            "A room's name is 1 to 64 lower-case letters, digits, dots, underscores and hyphens, "
            "and begins with a letter or a digit."
        )
    return name


def read_spec(members: Mapping[str, Any]) -> RoomSpec:
    """A room to be made, from the members of a JSON object."""
    _check_members(members, RoomSpec.__struct_fields__)
    name = members.get("name")
    if type(name) is not str:
        raise ArgumentInvalid("name must be a string.", field="name")
    durable = members.get("durable", True)
    if type(durable) is not bool:
        raise ArgumentInvalid("durable must be true or false.", field="durable")
    capabilities = members.get("capabilities")
    given = _read_grants(members.get("grants", {}))
    spec = RoomSpec(
        name=check_name(name),
        access=_read_access(members.get("access", "open")),
        durable=durable,
        capabilities=None if capabilities is None else _read_list("capabilities", capabilities),
        grants={handle: held for handle, held in given.items() if held is not None},
        policy=RoomPolicy(**_read_policy(members.get("policy", {}))),
        backends=read_backends(members.get("backends")),
    )
    check_rights(spec.capabilities, spec.grants)
    return spec


def read_patch(members: Mapping[str, Any]) -> RoomPatch:
    """What is to change of a room, from the members of a JSON object."""
    _check_members(members, RoomPatch.__struct_fields__)
    access = members.get("access", UNSET)
    capabilities = members.get("capabilities", UNSET)
    if capabilities is not UNSET and capabilities is not None:
        capabilities = _read_list("capabilities", capabilities)
    return RoomPatch(
        access=UNSET if access is UNSET else _read_access(access),
        capabilities=capabilities,
        grants=_read_grants(members.get("grants", {})),
        policy=_read_policy(members.get("policy", {})),
        backends=read_backends(members["backends"]) if "backends" in members else UNSET,
    )


def check_rights(capabilities: Capabilities | None, grants: Mapping[str, Capabilities]) -> None:
    """Refuse more than a room can give; after a change, ask it of the whole."""
    if len(grants) > MOST_GRANTED:
        raise ArgumentInvalid(f"grants may name at most {MOST_GRANTED} handles.", field="grants")
    everyone = capabilities or ()
    for held in grants.values():
        _compile("grants", (*everyone, *held))
    if len(msgspec.json.encode((everyone, grants))) > MAX_RIGHTS_BYTES:
        raise ArgumentInvalid(
            f"capabilities and grants may have at most {MAX_RIGHTS_BYTES:,} bytes together.",
            field="grants" if grants else "capabilities",
        )


def _check_members(members: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = members.keys() - {*known}
    if unknown:
        field = min(unknown)[:64]
        raise ArgumentInvalid(f"There is no {field!r} to set.", field=field)


def _read_access(value: Any) -> Access:
    for access in ACCESS:
        if value == access:
            return access
    raise ArgumentInvalid(f"access must be one of {', '.join(ACCESS)}.", field="access")


def _read_list(field: str, value: Any) -> Capabilities:
    if type(value) is not list or len(value) > MOST_PATTERNS:
        raise ArgumentInvalid(
            f"{field} must be a list of at most {MOST_PATTERNS} capability patterns.", field=field
        )
    _compile(field, value)
    return tuple(value)


def _compile(field: str, sources: Iterable[Source]) -> None:
    try:
        Rights(sources)
    except CapabilityError as error:
        raise type(error)(f"{field}: {error.message}", **{**error.data, "field": field}) from None


def _read_grants(value: Any) -> dict[str, Capabilities | None]:
    if type(value) is not dict:
        raise ArgumentInvalid(
            "grants must be an object of handles, each with a list of capability patterns.",
            field="grants",
        )
    read: dict[str, Capabilities | None] = {}
    for text, held in value.items():
        handle = parse_handle(text)
        if handle is None:
            raise ArgumentInvalid(f"grants: {text[:64]!r} is no handle.", field="grants")
        if handle in read:
            raise ArgumentInvalid(f"grants names {handle} twice.", field="grants")
        read[handle] = None if held is None else _read_list(f"grants.{handle}", held)
    return read


def _read_policy(value: Any) -> dict[str, Any]:
    """The members that are given, null being the default."""
    if type(value) is not dict:
        raise ArgumentInvalid("policy must be an object.", field="policy")
    unknown = value.keys() - _POLICY.keys()
    if unknown:
        field = f"policy.{min(unknown)[:64]}"
        raise ArgumentInvalid(f"There is no {field!r} to set.", field=field)
    return {
        name: _POLICY[name].default if given is None else _read_number(name, given)
        for name, given in value.items()
    }


def _read_number(name: str, value: Any) -> Any:
    annotated = _POLICY[name].type
    try:
        return msgspec.convert(value, annotated)
    except msgspec.ValidationError:
        (bounds,) = annotated.__metadata__
        noun = _NUMBERS[annotated.__origin__]
        raise ArgumentInvalid(
            f"policy.{name} must be {noun} from {bounds.ge:,.0f} to {bounds.le:,.0f}.",
            field=f"policy.{name}",
        ) from None
