"""Rules: those of one file, for as long as a proxy runs and whatever becomes of the file."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final, TypeAlias

from folkmoot.core.errors import RulesInvalid
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.proxy.interceptors.base import Groups, Means
from folkmoot.proxy.interceptors.view import Canonical
from folkmoot.proxy.rules.reading import read_rules
from folkmoot.proxy.rules.ruleset import RuleSet

logger = logging.getLogger("folkmoot.proxy")

LOOK_SECONDS: Final = 1.0

Stamp: TypeAlias = tuple[int, int, int] | None
"""What tells that a file is another one: its time, its size and its number."""


def _as_it_is(name: str) -> str:
    return name


class Rules:
    """An ordered set of rules that follows its file. A file that is wrong changes nothing."""

    def __init__(self, path: Path, means: Means) -> None:
        self._path = path
        self._means = means
        self._seen = stamp(path)
        self.ruleset = RuleSet(read_rules(path, means), means.canonical)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        clock: Clock,
        canonical: Canonical = _as_it_is,
        groups: Groups | None = None,
    ) -> Rules:
        """The rules of a file; `RulesInvalid` says what is wrong with it, and where.

        `canonical` answers the one name of a tool that may be spelled in several ways, and `groups`
        the groups that someone is in. Without it no rule can name who asks.
        """
        return cls(path, Means(clock, canonical, groups))

    @property
    def interceptors(self) -> tuple[Interceptor, ...]:
        """What a chain is made with; it goes by whatever the rules are at the time."""
        return (self.ruleset,)

    def reload(self) -> None:
        """Read the file again. What has not changed keeps what it has counted and learnt."""
        self.ruleset.swap(read_rules(self._path, self._means, self.ruleset.rules))

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """Read the file again whenever it is another one, until cancelled.

        The file is looked at every so many seconds, and read only when it has changed.
        """
        while True:
            await asyncio.sleep(seconds)
            now = stamp(self._path)
            if now == self._seen:
                continue
            self._seen = now
            try:
                self.reload()
            except RulesInvalid as error:
                logger.warning("the rules were not changed", extra={"error": error.message})
            else:
                count = len(self.ruleset.rules)
                logger.info("the rules were changed", extra={"rules": count})


def stamp(path: Path) -> Stamp:
    """What tells that a file is another one; None where there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
