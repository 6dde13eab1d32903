"""Where and how to record; and tapes one after the other, so that none grows for ever."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.core.message import ProtocolMessage, Request, Response
from folkmoot.core.ports import Carried
from folkmoot.mcp.wire import DISCOVER
from folkmoot.proxy.redaction import TapeRedactor, folder_key, own_key_file, redaction_key
from folkmoot.proxy.tape import TapeRecorder, TapeSide, new_name, read_tape
from folkmoot.proxy.tape.file import is_recorded, numbered

if TYPE_CHECKING:
    import asyncio

    from folkmoot.core.ports import Clock

logger = logging.getLogger("folkmoot.proxy")

TAPE_BYTES = 256 * 1024 * 1024
"""How long a tape in a folder may become before the next one is begun."""
MOST_DISCOVERY = 1024 * 1024
MOST_BESIDE = 10_000
"""How many tapes of one name may stand beside each other."""


class Rotation:
    """A recorder whose tapes have at most so many bytes, and the message that went beyond."""

    def __init__(self, begin: Callable[[TapeRecorder | None], TapeRecorder], most: int) -> None:
        self._begin = begin
        self._most = self._turn_at = most
        self._tape = begin(None)

    @property
    def tape(self) -> TapeRecorder:
        """The tape that is written now."""
        return self._tape

    def note(self, carried: Carried) -> None:
        """Take a message."""
        self._tape.note(carried)

    def commit(self) -> None:
        """Write what was taken; then begin the next tape if this one is long enough."""
        self._tape.commit()
        if self._tape.size >= self._turn_at:
            self._turn()

    def _turn(self) -> None:
        """Begin the next tape; where that cannot be done, the present one becomes longer."""
        tape = self._tape
        try:
            following = self._begin(tape)
        except e.TapeUnwritable as error:
            self._turn_at = tape.size + max(1, self._most // 16)
            logger.warning("the next tape cannot be begun", extra={"error": error.message})
            return
        self._tape, self._turn_at = following, self._most
        tape.close("continued")

    def close(self, reason: str = "closed") -> None:
        """End the last tape."""
        self._tape.close(reason)

    def discard(self) -> None:
        """End the last tape; if nothing was recorded on it, it is gone."""
        self._tape.discard()


class Recording(msgspec.Struct, frozen=True):
    """What is to be recorded: into a file, or a folder in which tapes get names of their own."""

    file: Path | None = None
    folder: Path | None = None
    best_effort: bool = False
    compress: bool | None = None
    redact: bool = True
    paths: tuple[str, ...] = ()
    key_file: Path | None = None
    tape_bytes: int = TAPE_BYTES

    @property
    def wanted(self) -> bool:
        return self.file is not None or self.folder is not None

    def redactor(self) -> TapeRedactor | None:
        """What keeps secrets off the tape, unless someone wants them on it."""
        if not self.redact:
            return None
        if self.key_file is not None:
            key = redaction_key(self.key_file)
        elif self.folder is not None:
            key = folder_key(self.folder)
        else:
            key = redaction_key(own_key_file(os.environ, Path.home()))
        return TapeRedactor(key, paths=self.paths)

    def begin(
        self,
        clock: Clock,
        client: TapeSide,
        server: TapeSide,
        failed: asyncio.Future[e.TapeUnwritable] | None = None,
    ) -> TapeRecorder | Rotation:
        """The tape, or the first of the tapes; `failed` hears of one that stops the traffic."""
        folder = self.folder
        if folder is not None:
            _make(folder)
        redactor = self.redactor()

        def tell(error: e.TapeUnwritable) -> None:
            logger.error("recording failed", extra={"error": error.message})
            if failed is not None and not failed.done() and not self.best_effort:
                failed.set_result(error)

        def tape(path: Path, after: TapeRecorder | None = None) -> TapeRecorder:
            return TapeRecorder.open(
                path,
                clock=clock,
                client=client,
                server=server,
                program=f"folkmoot {__version__}",
                redactor=redactor,
                best_effort=self.best_effort,
                on_failure=tell,
                compress=self.compress,
                after=after,
            )

        if folder is None:
            return beside(self.file or Path(os.devnull), tape)
        suffix = ".jsonl.zst" if self.compress else ".jsonl"
        return Rotation(lambda after: tape(new_name(folder, clock, suffix), after), self.tape_bytes)


def beside(path: Path, begin: Callable[[Path], TapeRecorder]) -> TapeRecorder:
    """A tape in this file or, where one is there already, in the next free one beside it.

    A client starts the same command again and again, and no tape is ever overwritten. One that
    starts it once only to ask what the server is, as the TypeScript client of the stateless era
    does, has its question on the tape of what follows.
    """
    for number in range(1, MOST_BESIDE):
        candidate = numbered(path, number)
        if candidate.is_file():
            last = not numbered(path, number + 1).is_file()
            if last and (recorder := begun_after_discovery(candidate, begin)) is not None:
                return recorder
            continue
        try:
            return begin(candidate)
        except e.TapeUnwritable:
            # Another proxy may have taken the name in this very moment.
            if not candidate.is_file():
                raise
    raise e.TapeUnwritable(f"{path}: {MOST_BESIDE - 1:,} tapes of this name exist; remove some.")


def begun_after_discovery(path: Path, begin: Callable[[Path], TapeRecorder]) -> TapeRecorder | None:
    """A tape that goes on after one that has nothing but a `server/discover`, in its place.

    None where the file has something else, is of another server, or is still recorded on.
    """
    try:
        with path.open("rb") as file:
            free = os.fstat(file.fileno()).st_size <= MOST_DISCOVERY
            free = free and not is_recorded(file.fileno())
        found = read_tape(path) if free else None
    except (OSError, e.TapeError):
        return None
    if found is None or not is_discovery([each.envelope.message for each in found.entries]):
        return None
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    path.rename(aside)
    recorder = None
    try:
        recorder = begin(path)
        if read_tape(path).header.server == found.header.server:
            for entry in found.entries:
                recorder.note(Carried(entry.envelope))
            recorder.commit()
            aside.unlink()
            return recorder
    finally:
        if aside.exists():
            if recorder is not None:
                recorder.discard()
            # Unlike a rename, this leaves a tape alone that another proxy has begun meanwhile.
            with suppress(FileExistsError):
                path.hardlink_to(aside)
                aside.unlink()
    return None


def is_discovery(messages: list[ProtocolMessage]) -> bool:
    """Whether messages are the question what a server is, and its answer."""
    if len(messages) != 2:
        return False
    asked, answered = messages
    discovers = isinstance(asked, Request) and asked.method == DISCOVER
    return discovers and isinstance(answered, Response)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise e.TapeUnwritable(f"{folder}: is not a folder.") from None
    except OSError as error:
        why = (error.strerror or "unusable").lower()
        raise e.TapeUnwritable(f"{folder}: cannot be created: {why}.") from None
