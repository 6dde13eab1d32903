"""What someone asks a room to be: read from plain JSON, every field checked and named if wrong.

Of a change, what is left out stays, and null goes back to the default. Lists, and the grants, take
the place of those until now; of the policy, each member that is given does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights, Source
from folkmoot.names import validate_namespace
from folkmoot.names.grammar import parse_handle
from folkmoot.rooms.limits import (
    MAX_BACKENDS,
    MAX_GRANTED,
    MAX_OWNERS,
    MAX_PATTERNS,
    MAX_RIGHTS_BYTES,
)
from folkmoot.rooms.model import ACCESS, Access, RoomPolicy

ROOM_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


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
    grants: dict[str, Capabilities] | UnsetType = UNSET
    """By handle: all there are from then on."""
    policy: dict[str, Any] = {}
    backends: tuple[str, ...] | UnsetType = UNSET
    owners: tuple[str, ...] | UnsetType = UNSET
    """By handle: all there are from then on."""

    def change_policy(self, policy: RoomPolicy) -> RoomPolicy:
        """The policy with what is to change of it."""
        return msgspec.structs.replace(policy, **self.policy)


def check_room_name(name: str) -> str:
    """Refuse a name that no room can have."""
    if not ROOM_NAME.fullmatch(name):
        raise e.RoomNameInvalid(
            "A room's name is 1 to 64 lower-case letters, digits, dots, underscores and hyphens, "
            "and begins with a letter or a digit."
        )
    return name


def read_spec(members: Mapping[str, Any]) -> RoomSpec:
    """A room to be made, from the members of a JSON object."""
    _check_members(members, RoomSpec.__struct_fields__)
    name = members.get("name")
    if type(name) is not str:
        raise e.ArgumentInvalid("name must be a string.", field="name")
    durable = members.get("durable", True)
    if type(durable) is not bool:
        raise e.ArgumentInvalid("durable must be true or false.", field="durable")
    capabilities = members.get("capabilities")
    spec = RoomSpec(
        name=check_room_name(name),
        access=_read_access(members.get("access", "open")),
        durable=durable,
        capabilities=None
        if capabilities is None
        else read_capabilities("capabilities", capabilities),
        grants=_read_grants(members.get("grants", {})),
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
        capabilities = read_capabilities("capabilities", capabilities)
    return RoomPatch(
        access=UNSET if access is UNSET else _read_access(access),
        capabilities=capabilities,
        grants=_read_grants(members["grants"]) if "grants" in members else UNSET,
        policy=_read_policy(members.get("policy", {})),
        backends=read_backends(members["backends"]) if "backends" in members else UNSET,
        owners=_read_owners(members["owners"]) if "owners" in members else UNSET,
    )


def check_rights(capabilities: Capabilities | None, grants: Mapping[str, Capabilities]) -> None:
    """Refuse more than a room can give; after a change, ask it of the whole."""
    if len(grants) > MAX_GRANTED:
        raise e.ArgumentInvalid(f"grants may name at most {MAX_GRANTED} handles.", field="grants")
    everyone = capabilities or ()
    for held in grants.values():
        _compile("grants", (*everyone, *held))
    if len(msgspec.json.encode((everyone, grants))) > MAX_RIGHTS_BYTES:
        raise e.ArgumentInvalid(
            f"capabilities and grants may have at most {MAX_RIGHTS_BYTES:,} bytes together.",
            field="grants" if grants else "capabilities",
        )


def _check_members(members: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = members.keys() - {*known}
    if unknown:
        field = min(unknown)[:64]
        raise e.ArgumentInvalid(f"There is no setting {field!r}.", field=field)


def _read_access(value: Any) -> Access:
    for access in ACCESS:
        if value == access:
            return access
    raise e.ArgumentInvalid(f"access must be one of {', '.join(ACCESS)}.", field="access")


def read_capabilities(field: str, value: Any) -> Capabilities:
    """A list of capabilities, each of which can be compiled."""
    if type(value) is not list or len(value) > MAX_PATTERNS:
        raise e.ArgumentInvalid(
            f"{field} must be a list of at most {MAX_PATTERNS} capability patterns.", field=field
        )
    _compile(field, value)
    return tuple(value)


def _compile(field: str, sources: Iterable[Source]) -> None:
    try:
        Rights(sources)
    except e.CapabilityError as error:
        raise type(error)(f"{field}: {error.message}", **{**error.data, "field": field}) from None


def _read_grants(value: Any) -> dict[str, Capabilities]:
    if type(value) is not dict:
        raise e.ArgumentInvalid(
            "grants must be an object of handles, each with a list of capability patterns.",
            field="grants",
        )
    read: dict[str, Capabilities] = {}
    for text, held in value.items():
        handle = _read_handle("grants", text)
        if handle in read:
            raise e.ArgumentInvalid(f"grants names {handle} twice.", field="grants")
        if held is None:
            raise e.ArgumentInvalid(
                f"grants: leave {handle} out instead of null. The grants that are given are all "
                "that the room has.",
                field="grants",
            )
        read[handle] = read_capabilities(f"grants.{handle}", held)
    return read


def _read_owners(value: Any) -> tuple[str, ...]:
    if type(value) is not list or not 0 < len(value) <= MAX_OWNERS:
        raise e.ArgumentInvalid(
            f"owners must be a list of 1 to {MAX_OWNERS} handles.", field="owners"
        )
    return tuple(dict.fromkeys(_read_handle("owners", each) for each in value))


def _read_handle(field: str, text: Any) -> str:
    handle = parse_handle(text) if type(text) is str else None
    if handle is None:
        raise e.ArgumentInvalid(f"{field}: {str(text)[:64]!r} is not a valid handle.", field=field)
    return handle


def read_backends(value: Any) -> tuple[str, ...]:
    """The namespaces that someone names, each once; null names none."""
    if value is None:
        return ()
    if type(value) is not list or len(value) > MAX_BACKENDS:
        raise e.ArgumentInvalid(
            f"backends must be a list of at most {MAX_BACKENDS} namespaces.", field="backends"
        )
    for namespace in value:
        try:
            validate_namespace(namespace if type(namespace) is str else "")
        except e.InvalidName:
            told = repr(namespace)[:64]
            raise e.ArgumentInvalid(
                f"backends: {told} is not a valid namespace.", field="backends"
            ) from None
    if len({*value}) < len(value):
        raise e.ArgumentInvalid("backends names one twice.", field="backends")
    return tuple(sorted(value))


def _read_policy(value: Any) -> dict[str, Any]:
    """The members that are given, null being the default."""
    if type(value) is not dict:
        raise e.ArgumentInvalid("policy must be an object.", field="policy")
    unknown = value.keys() - _POLICY.keys()
    if unknown:
        field = f"policy.{min(unknown)[:64]}"
        raise e.ArgumentInvalid(f"There is no setting {field!r}.", field=field)
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
        raise e.ArgumentInvalid(
            f"policy.{name} must be {noun} from {bounds.ge:,.0f} to {bounds.le:,.0f}.",
            field=f"policy.{name}",
        ) from None
