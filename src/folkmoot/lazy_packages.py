"""Packages whose parts are loaded when they are first asked for.

The nouns of a package are for programs too that never run it: a command that knows what a message
of mail looks like need not load the mailbox.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loading(package: str, parts: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `parts` has its modules with the names they are asked for.

    The modules themselves can be asked for too, as if each was imported.
    """
    where = {name: module for module, names in parts.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in where:
            try:
                return import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
                raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        value = getattr(import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
