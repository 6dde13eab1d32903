"""Operations for a dispatcher that has no hub around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from folkmoot.clock import SystemClock
from folkmoot.operations import Absent, Call, Operation, Services, ToolCatalogue
from folkmoot.operations.dispatch import Dispatcher
from folkmoot.operations.row import Arguments
from folkmoot.ratelimits import Limit, RateLimits


def operation(name: str, handler: Callable[[Call[Any]], Awaitable[Any]], **more: Any) -> Operation:
    absent = Absent("a test")
    given = {
        "takes": Arguments,
        "effect": "changes",
        "scope": "",
        "routes": absent,
        "commands": absent,
        **more,
    }
    return Operation(name=name, description="", gives=Struct, handler=handler, **given)


def dispatcher(
    *rows: Operation, limits: dict[str, Limit] | None = None, **services: Any
) -> Dispatcher:
    """One that performs these operations, or all there are."""
    there = Services(limits=RateLimits(SystemClock(), limits or {}), **services)
    return Dispatcher(there, ToolCatalogue(rows)) if rows else Dispatcher(there)
