"""Objects with an identity and a state, as opposed to values: services, sessions, open calls."""

from __future__ import annotations

import msgspec


class Entity(msgspec.Struct, eq=False, dict=True, weakref=True):
    """Its fields are its constructor's parameters; `__post_init__` makes the rest from them.

    It equals only itself. Its `repr` shows no field, since many hold secrets.
    """

    __repr__ = object.__repr__
