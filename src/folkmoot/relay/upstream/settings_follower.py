"""The servers behind the hub as the settings file has them, whatever becomes of the file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.relay.upstream.model import ReloadReport
from folkmoot.settings import FIELDS, GatewaySpec, Loaded, Settings
from folkmoot.settings.editing import edit, text_of

logger = logging.getLogger("folkmoot.gateway")

LOOK_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 0.1
MOST_LOOKS: Final = 20
"""How often a file that is being written is looked at again before it is read all the same."""
READ_EACH_TIME: Final = frozenset({"gateway.mcp_servers", "gateway.edit_from_web"})
LIVE: Final = frozenset(
    {
        "gateway.audit_arguments",
        "gateway.new_tools",
        "interceptors.rules",
        "mail.keep_days",
        "record.enabled",
        "record.folder",
        "registration",
    }
)
"""Settings that are followed too; every other one counts from the next start on."""

Apply: TypeAlias = Callable[[GatewaySpec], Awaitable[None]]
Stamp: TypeAlias = tuple[int, int, int, int, int] | None
"""What tells that a file is another one: its time, size and number, its owner and permissions."""


class SettingsFollower(Entity):
    """Reads the settings again when a file of theirs changes. Wrong ones change nothing."""

    loaded: Loaded
    apply: Apply
    take_up: Callable[[Settings], None] = lambda _: None
    """Goes by the other settings that are followed; raises what is wrong with them first."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _editing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _told: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._running = self.loaded.settings
        self._files = self.loaded.files
        self._seen = self._stamps()

    @property
    def files(self) -> tuple[str, ...]:
        """The settings file and its imports."""
        return self._files

    async def reload(self) -> ReloadReport:
        """Read the files and apply what they say; raises the `SettingsError` of wrong ones."""
        try:
            async with self._lock:
                return await self._read()
        except e.SettingsError as error:
            # Also where someone is told: they may be gone by the time that someone wonders.
            for problem in error.data.get("problems", [error.message]):
                logger.warning("the settings were not changed: %s", problem)
            raise
        except e.FolkmootError as error:
            logger.warning("the settings could not be applied: %s", error.message)
            raise

    async def edit(
        self, change: Callable[[str], str], *, pretend: bool = False
    ) -> ReloadReport | None:
        """Change the settings file and apply it; what cannot be applied is taken back.

        When one only pretends, what is wrong with the change is raised and nothing is written.
        """
        async with self._editing:
            loaded = await asyncio.to_thread(self.loaded.again)
            before = await asyncio.to_thread(text_of, loaded)
            await asyncio.to_thread(edit, loaded, change, pretend=pretend)
            if pretend:
                return None
            try:
                return await self.reload()
            except e.FolkmootError:
                await asyncio.to_thread(edit, loaded, lambda _: before)
                raise

    async def _read(self) -> ReloadReport:
        self._seen = self._stamps()
        try:
            loaded = await asyncio.to_thread(self.loaded.again)
        except e.SettingsError as error:
            self._look_at((*self.loaded.files, *error.data.get("files", ())))
            raise
        if loaded.file is None and self.loaded.file is not None:
            gone = f"{self.loaded.file}: is gone"
            raise e.SettingsError(gone, problems=[gone])
        self._look_at(loaded.files)
        report = compared(self.loaded, loaded, self._running)
        if report.followed:
            self.take_up(loaded.settings)
        if report.different:
            await self.apply(loaded.gateway)
        self.loaded = loaded
        self._tell(report)
        return report

    def _look_at(self, files: tuple[str, ...]) -> None:
        """Watch these from now on; those that were watched before may have changed since read."""
        seen = dict(zip(self._files, self._seen, strict=True))
        self._files = tuple(dict.fromkeys(files))
        self._seen = tuple(
            seen[file] if file in seen else stamp(Path(file)) for file in self._files
        )

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """Reload whenever a file is another one, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if self._stamps() == self._seen:
                continue
            await self._settled()
            try:
                with suppress(e.FolkmootError):
                    await self.reload()
            except Exception:
                # The hub shares our task group: nothing that a file holds may end it.
                logger.exception("the settings could not be applied")

    async def _settled(self) -> None:
        """Wait until nobody writes any more; half a file may look like a whole one."""
        for _ in range(MOST_LOOKS):
            before = self._stamps()
            await asyncio.sleep(SETTLE_SECONDS)
            if self._stamps() == before:
                return

    def _stamps(self) -> tuple[Stamp, ...]:
        return tuple(stamp(Path(file)) for file in self._files)

    def _tell(self, report: ReloadReport) -> None:
        if report.different or report.followed:
            what = ("added", "removed", "changed", "followed")
            told: dict[str, Any] = {name: ", ".join(getattr(report, name)) for name in what}
            told = {name: names for name, names in told.items() if names}
            logger.info("the settings were changed", extra=told)
        for note in report.notes:
            logger.warning("%s", note)
        if report.restart and report.restart != self._told:
            names = ", ".join(report.restart)
            logger.warning("some settings changed and take effect at the next start: %s", names)
        self._told = report.restart


def compared(before: Loaded, now: Loaded, running: Settings) -> ReloadReport:
    """What two readings of the settings differ in."""
    old, new = before.gateway.backends, now.gateway.backends
    return ReloadReport(
        file=now.file,
        backends=len(new),
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        rights=any(
            getattr(before.gateway, name) != getattr(now.gateway, name)
            for name in ("groups", "grants", "asks")
        ),
        followed=tuple(path for path in different(before.settings, now.settings) if path in LIVE),
        restart=tuple(path for path in different(running, now.settings) if path not in LIVE),
        notes=tuple(note for note in now.notes if note not in before.notes),
    )


def different(one: Settings, other: Settings) -> list[str]:
    """The paths of changed settings, except those that are followed."""
    return [
        path
        for path, field in FIELDS.items()
        if path not in READ_EACH_TIME and field.value_in(one) != field.value_in(other)
    ]


def stamp(path: Path) -> Stamp:
    """A stamp that changes with the file; None without a file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_uid, status.st_mode
