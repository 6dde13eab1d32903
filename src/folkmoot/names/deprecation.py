"""Deprecation: a name is deprecated in one release and removed two releases later."""

from __future__ import annotations

import functools
import re
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, TypeVar, cast

from folkmoot.core import errors as e
from folkmoot.names.grammar import RULES
from folkmoot.names.limits import MAX_VERSION, SECONDS_BETWEEN_LINES
from folkmoot.names.nearest import truncated

if TYPE_CHECKING:
    import logging


VERSION = re.compile(
    r"\s*v?(?:(?P<epoch>[0-9]+)!)?(?P<numbers>[0-9]+(?:\.[0-9]+)*)"
    r"(?:[-_.]?[A-Za-z+][A-Za-z0-9.+_-]*|-[0-9]+)?\s*",
    re.ASCII,
)


def numbers_of(version: str) -> tuple[int, ...] | None:
    """The epoch and the numbers of a version without zeros at their end, to be compared.

    `1.6.0rc1` is the release it leads to, and `1.6.0.post1` the one it came after. None for a text
    that is no version.
    """
    found = VERSION.fullmatch(version) if len(version) <= MAX_VERSION else None
    if found is None:
        return None
    numbers = [int(number) for number in found["numbers"].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return (int(found["epoch"] or 0), *numbers)


def release_of(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Which release it is: releases are counted by major and minor number."""
    return (*numbers, 0, 0)[:3]


def checked(version: str) -> tuple[int, ...]:
    """The numbers of a version; raises `InvalidName` for a text that is none."""
    return numbers_of(version) or _refuse(version)


def _refuse(version: str) -> NoReturn:
    raise e.InvalidName(
        f"Invalid version: {truncated(version)}. {RULES['version-syntax']}",
        name=truncated(version),
        rule="version-syntax",
    )


def running_version(module: str) -> str | None:
    """The version of the package that a module is in: as installed, else as its `__version__`.

    None where neither is known, or is no version.
    """
    from importlib import metadata

    package = _package(module)
    if not package:
        return None
    found: object
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        found = getattr(sys.modules.get(package), "__version__", None)
    if found is None:
        # An import package may have another name than its distribution; to find out is slow.
        for distribution in metadata.packages_distributions().get(package, ()):
            found = metadata.version(distribution)
    return found if isinstance(found, str) and numbers_of(found) else None


def _package(module: str) -> str:
    """The top-level package, also of a module that was started with `python -m`."""
    if module == "__main__":
        module = getattr(getattr(sys.modules.get(module), "__spec__", None), "name", None) or ""
    return module.partition(".")[0]


F = TypeVar("F", bound=Callable[..., Any])
Version: TypeAlias = str | Callable[[], str | None]


class Stage(Enum):
    """How far a deprecated name is on its way out."""

    WARNED = "warned"
    """Release N: it works, and each call is worth a warning."""
    HIDDEN = "hidden"
    """From release N+1 on: it works, is left out of the documentation, and a call is an error."""
    REMOVED = "removed"
    """It should be gone; as long as it is there it works, and the linter reports it."""

    @property
    def hidden(self) -> bool:
        """Whether documentation leaves the name out."""
        return self is not Stage.WARNED

    @property
    def level(self) -> int:
        """The level calls are logged at: that of WARNING or ERROR in `logging`."""
        return 30 if self is Stage.WARNED else 40


class Dated(Protocol):
    """Anything that says since when a name is deprecated and in which release it is gone."""

    @property
    def since(self) -> str | None:
        """Release N."""

    @property
    def removed_in(self) -> str | None:
        """The first release without the name."""


def stage(deprecation: Dated, version: str | None) -> Stage:
    """Where a deprecated name stands in a version; where that cannot be told, it is warned of.

    The release named by `since` is N, and N+1 is any of a higher major or minor number. Versions
    before it count as N too: the deprecation is written before its release is made.
    """
    now = numbers_of(version) if version else None
    gone = numbers_of(deprecation.removed_in) if deprecation.removed_in else None
    begun = numbers_of(deprecation.since) if deprecation.since else None
    if now and gone and now >= gone:
        return Stage.REMOVED
    if now and begun and release_of(now) > release_of(begun):
        return Stage.HIDDEN
    return Stage.WARNED


class Deprecation:
    """That a name is going away: since which release, in which it is gone, and what to use instead.

    `version` is that of the running package, or what tells it. For tools that are functions there
    is `deprecated`; anything else calls `warn` when it is used.
    """

    def __init__(
        self,
        *,
        since: str,
        removed_in: str,
        use: str | None = None,
        name: str | None = None,
        version: Version | None = None,
        every: float = SECONDS_BETWEEN_LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if checked(removed_in) <= checked(since):
            raise e.InvalidName(
                f"Deprecated since {since} and removed in {removed_in}. {RULES['removal-order']}",
                name=removed_in,
                rule="removal-order",
            )
        if isinstance(version, str):
            checked(version)
        self.since = since
        self.removed_in = removed_in
        self.use = use
        self.name = name
        self._version = version
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._next = float("-inf")
        self._unsaid = 0

    @functools.cached_property
    def version(self) -> str | None:
        """The version of the running package, where it is known."""
        return self._version() if callable(self._version) else self._version

    @property
    def stage(self) -> Stage:
        """Where the name stands in the running version."""
        return stage(self, self.version)

    @property
    def hidden(self) -> bool:
        """Whether documentation of the running version leaves the name out."""
        return self.stage.hidden

    @property
    def text(self) -> str:
        """What a caller should know, in a sentence or two."""
        now = self.stage
        going = (
            f"should be gone since {self.removed_in}"
            if now is Stage.REMOVED
            else f"is deprecated since {self.since} and will be gone in {self.removed_in}"
        )
        instead = f" Use {self.use}." if self.use else ""
        return f"{self.name or 'This name'} {going}.{instead}"

    def warn(self, logger: logging.Logger | None = None) -> None:
        """Log that the name was used, at the level of its stage, and not more than once a minute.

        The line counts the uses since the one before. Never raises for want of a version.
        """
        now = self._clock()
        with self._lock:
            if now < self._next:
                self._unsaid += 1
                return
            self._next = now + self._every
            unsaid, self._unsaid = self._unsaid, 0
        more = f" ({unsaid} more calls since this was last said.)" if unsaid else ""
        (logger or _logger(__name__)).log(self.stage.level, "%s%s", self.text, more)

    def __repr__(self) -> str:
        return (
            f"Deprecation(name={self.name!r}, since={self.since!r}, "
            f"removed_in={self.removed_in!r}, use={self.use!r})"
        )


def deprecated(
    *,
    since: str,
    removed_in: str,
    use: str | None = None,
    name: str | None = None,
    version: Version | None = None,
    every: float = SECONDS_BETWEEN_LINES,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[F], F]:
    """Mark a tool's function as deprecated; it works as before, and calls are logged.

    Goes below the decorator that registers the tool. `name` is the function's unless told, and
    `version` that of the package the function is in. The mark is its `__deprecated_tool__`.
    """

    def mark(function: F) -> F:
        import inspect

        if not callable(function):
            raise TypeError("Put @deprecated below the decorator that registers the tool.")
        told = name or getattr(function, "__name__", None)
        module = getattr(function, "__module__", None) or __name__
        deprecation = Deprecation(
            since=since,
            removed_in=removed_in,
            use=use,
            name=told,
            version=version or functools.partial(running_version, module),
            every=every,
            clock=clock,
        )
        logger = _logger(module)

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            deprecation.warn(logger)
            return await function(*args, **kwargs)

        @functools.wraps(function)
        def now(*args: Any, **kwargs: Any) -> Any:
            deprecation.warn(logger)
            return function(*args, **kwargs)

        waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )
        marked: Any = later if waits else now
        marked.__deprecated_tool__ = deprecation
        return cast("F", marked)

    return mark


def _logger(name: str) -> logging.Logger:
    import logging

    return logging.getLogger(name)
