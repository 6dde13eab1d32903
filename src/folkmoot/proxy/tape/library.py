"""All tapes that a hub can show: those it records, and those of its own user's proxies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from folkmoot.core.errors import ArgumentInvalid, TapeNotFound
from folkmoot.proxy.tape.folder import AT_ONCE, TapeFolder
from folkmoot.proxy.tape.pages import WRONG_CURSOR
from folkmoot.proxy.tape_views import TapeRow

CURSOR: Final = re.compile(r"([0-9]{1,20}):([0-9a-f]{0,12}):(.{1,128})")
NOTED_SECONDS: Final = 600.0
MOST_NOTED: Final = 1_000


class TapeLibrary:
    """The hub's folder, and the places where proxies of its user have recorded, by short names.

    `recorded` finds those places. Each time it is asked for tapes of proxies, it looks again.
    """

    def __init__(
        self, folder: Path | None, recorded: Callable[[], Mapping[str, Path]] = dict
    ) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.own = TapeFolder(folder, turns=self._turns)
        self._recorded = recorded
        self._noted: dict[tuple[str, str, str], float] = {}

    async def page(
        self, cursor: str | None, limit: int, *, proxies: bool
    ) -> tuple[list[TapeRow], str | None]:
        """Tapes, the last written first, and where the next page begins."""
        return await self.own.in_thread(self._page, cursor, limit, proxies)

    async def find(self, place: str, *, proxies: bool) -> TapeFolder:
        """The tapes of a place."""
        if not place:
            return self.own
        found = await self.own.in_thread(self._places) if proxies else {}
        if place not in found:
            raise TapeNotFound("There are no tapes at this place.")
        return found[place]

    def is_new_reader(self, who: str, place: str, name: str, now: float) -> bool:
        """Whether someone has not read a tape for some minutes: reading it page by page is once."""
        key = (who, place, name)
        before = self._noted.pop(key, None)
        while len(self._noted) >= MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        is_new = before is None or now - before >= NOTED_SECONDS
        self._noted[key] = now if before is None or is_new else before
        return is_new

    def _places(self) -> dict[str, TapeFolder]:
        found: dict[str, TapeFolder] = {}
        folders = {self.own.folder.resolve()} if self.own.folder is not None else set()
        files: list[tuple[str, Path]] = []
        for place, path in self._recorded().items():
            if not path.is_dir():
                files.append((place, path))
            elif path.resolve() not in folders:
                folders.add(path.resolve())
                found[place] = TapeFolder(path, place=place, turns=self._turns)
        for place, path in files:
            if path.parent.resolve() not in folders:
                found[place] = TapeFolder(
                    path.parent, place=place, only=path.name, turns=self._turns
                )
        return found

    def _page(
        self,
        cursor: str | None,
        limit: int,
        proxies: bool,  # noqa: FBT001 - of one caller
    ) -> tuple[list[TapeRow], str | None]:
        places = {"": self.own, **(self._places() if proxies else {})}
        known = [
            (written, place, name)
            for place, folder in places.items()
            for written, name in folder.names()
        ]
        if cursor is not None:
            given = CURSOR.fullmatch(cursor)
            if given is None:
                raise ArgumentInvalid(WRONG_CURSOR, field="cursor")
            last = (int(given[1]), given[2], given[3])
            known = [each for each in known if each < last]
        found: list[TapeRow] = []
        for key in sorted(known, reverse=True):
            info = places[key[1]].info(key[2])
            if info is not None:
                found.append(info)
            if len(found) == limit:
                return found, "{}:{}:{}".format(*key)
        return found, None
