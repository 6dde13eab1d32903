"""Third-party interceptors, found by the entry point `folkmoot.interceptors`.

What makes one is called with a table of options and answers an `Interceptor`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.ports import Interceptor

logger = logging.getLogger("folkmoot.proxy")

GROUP: Final = "folkmoot.interceptors"


def load_plugins(names: Sequence[str]) -> list[Interceptor]:
    """The interceptors of these names, in order, without options."""
    return [load_plugin(name) for name in names]


def load_plugin(name: str, options: Mapping[str, Any] | None = None) -> Interceptor:
    """The interceptor of a name, made with these options; `RulesInvalid` says why it cannot be."""
    make = _loaded(_found(name))
    try:
        made = make(dict(options or {}))
    except e.FolkmootError as error:
        raise e.RulesInvalid(f"The interceptor {name!r} refuses its options: {error}") from None
    except Exception as error:
        logger.exception("an interceptor could not be made", extra={"interceptor": name})
        told = str(error) or type(error).__name__
        raise e.RulesInvalid(f"The interceptor {name!r} could not be made: {told}.") from None
    if not (
        isinstance(getattr(made, "name", None), str)
        and isinstance(getattr(made, "guards", None), bool)
        and callable(getattr(made, "intercept", None))
    ):
        raise e.RulesInvalid(f"The interceptor {name!r} has no 'name', 'guards' or 'intercept'.")
    interceptor: Interceptor = made
    return interceptor


def _found(name: str) -> EntryPoint:
    installed = entry_points(group=GROUP)
    for entry in installed:
        if entry.name == name:
            return entry
    names = ", ".join(sorted({entry.name for entry in installed}))
    others = f"installed are: {names}" if names else "none is"
    raise e.RulesInvalid(f"No interceptor {name!r} is installed; {others}.")


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        logger.exception("an interceptor could not be loaded", extra={"interceptor": entry.name})
        told = str(error) or type(error).__name__
        raise e.RulesInvalid(f"The interceptor {entry.name!r} cannot be loaded: {told}.") from None
