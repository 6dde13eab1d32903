"""Backends as participants: which a room may have, and under which names they are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from folkmoot.core.errors import ArgumentInvalid, BackendUnknown, InvalidName, NameRefused
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.names import validate_namespace
from folkmoot.rooms.machine import BACKEND
from folkmoot.rooms.machine.likeness import check_name, skeleton
from folkmoot.rooms.model import MOST_BACKENDS, Visitor
from folkmoot.rooms.ports import Backends


def backend_principal(namespace: str) -> Principal:
    """A backend as a room knows it; it is nobody's account."""
    return Principal(f"{BACKEND}{namespace}", namespace, PrincipalType.BACKEND)


def read_backends(value: Any) -> tuple[str, ...]:
    """The namespaces that someone names, each once; null names none."""
    if value is None:
        return ()
    if type(value) is not list or len(value) > MOST_BACKENDS:
        raise ArgumentInvalid(
            f"backends must be a list of at most {MOST_BACKENDS} namespaces.", field="backends"
        )
    for namespace in value:
        try:
            validate_namespace(namespace if type(namespace) is str else "")
        except InvalidName:
            told = repr(namespace)[:64]
            raise ArgumentInvalid(
                f"backends: {told} is not a valid namespace.", field="backends"
            ) from None
    if len({*value}) < len(value):
        raise ArgumentInvalid("backends names one twice.", field="backends")
    return tuple(sorted(value))


def check_brought(backends: Backends | None, visitor: Visitor, namespaces: Iterable[str]) -> None:
    """Refuse backends that are none, or none that this one may use any part of.

    Which of the two it is, is not told.
    """
    for namespace in namespaces:
        if (
            visitor.account is None
            or backends is None
            or not backends.may_bring(visitor.principal, namespace)
        ):
            raise BackendUnknown(f"There is no backend {namespace}.", field="backends")


def check_likeness(namespaces: Collection[str], owners: Iterable[str]) -> None:
    """Refuse backends that could be mistaken for the hub, an owner of the room, or each other."""
    seen = {skeleton(owner): owner for owner in owners}
    for namespace in namespaces:
        try:
            check_name(namespace)
        except NameRefused as error:
            raise ArgumentInvalid(f"backends: {error.message}", field="backends") from None
        other = seen.setdefault(skeleton(namespace), namespace)
        if other != namespace:
            raise ArgumentInvalid(
                f"backends: {namespace} could be mistaken for {other}.", field="backends"
            )
