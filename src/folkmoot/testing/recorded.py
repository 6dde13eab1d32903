"""RecordedServer: the MCP server of a test, which is the real one once and its tape ever after."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from folkmoot.clock import SystemClock
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.jsonpath import JsonPath
from folkmoot.proxy.replay.matching import Mode
from folkmoot.proxy.tape import (
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    TapeSide,
    follow_lines,
    read_tape,
)
from folkmoot.proxy.tape.lines import encode_line

if TYPE_CHECKING:
    from folkmoot.relay.tape_server import Replay


NAME: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,4}"
)
OPTIONS: Final = frozenset(("command", "url", "mode", "ignore", "redact"))
PROGRAM: Final = (sys.executable, "-m", "folkmoot")
USAGE: Final = (
    'Mark the test with its tape, such as @pytest.mark.tape("weather", command=["python", '
    '"server.py"]).'
)


class TapeUnusable(Exception):
    """The marker is wrong, or there is no tape; the sentence says what to do."""


class Marked(NamedTuple):
    """The arguments of a marker."""

    path: Path
    command: tuple[str, ...] = ()
    url: str = ""
    mode: Mode = Mode.ARGUMENTS
    ignore: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()

    @classmethod
    def of(cls, marker: Any, folder: Path) -> Marked:
        """What a marker of pytest says, for a test whose tapes are in a folder."""
        if marker is None or len(marker.args) != 1:
            raise TapeUnusable(USAGE)
        options: Mapping[str, Any] = marker.kwargs
        (name,) = marker.args
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise TapeUnusable(
                f"A tape cannot be called {name!r}: use letters, digits, dots, dashes and "
                "underscores, and / for folders."
            )
        if unknown := set(options) - OPTIONS:
            raise TapeUnusable(f"The marker tape has no option {', '.join(sorted(unknown))}.")
        if options.get("command") and options.get("url"):
            raise TapeUnusable("A tape has a command or a url, not both.")
        mode = options.get("mode", Mode.ARGUMENTS.value)
        if mode not in (known := [each.value for each in Mode]):
            raise TapeUnusable(f"The mode of a tape is one of {', '.join(known)}, not {mode!r}.")
        for pattern in (*_words(options, "ignore"), *_words(options, "redact")):
            JsonPath.below(pattern)
        return cls(
            folder / f"{name}.jsonl",
            _words(options, "command"),
            str(options.get("url") or ""),
            Mode(mode),
            _words(options, "ignore"),
            _words(options, "redact"),
        )


def _words(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = options.get(name) or ()
    if name == "command" and isinstance(value, str):
        value = shlex.split(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TapeUnusable(f"The {name} of a tape is a list, not {value!r}.")
    return tuple(map(str, value))


class RecordedServer:
    """What a test connects its MCP client to: `command` for stdio, or `url` for HTTP."""

    mode: Literal["record", "replay"]
    """Whether the real server is asked, or its tape."""

    def __init__(self, marked: Marked, choice: str, folder: Path) -> None:
        self.path = marked.path
        self._marked = marked
        self._recorded = folder / "recorded"
        self._misses = folder / "misses.jsonl"
        self._background: Background[str] | None = None
        self._replay: Replay | None = None
        there = self.path.exists()
        if choice == "replay" and not there:
            raise TapeUnusable(
                f"There is no tape at {self.path}. Record it with --tapes=record where the server "
                "can be reached, and commit the file."
            )
        self.mode = "record" if choice == "record" or not there else "replay"
        if self.mode == "record" and not (marked.command or marked.url):
            raise TapeUnusable(
                f"There is no tape at {self.path}, and nothing to record: give the marker a "
                "command or a url."
            )

    @property
    def command(self) -> list[str]:
        """The command line of the server, for clients that start one; each start begins anew."""
        marked = self._marked
        if self.mode == "replay":
            options = ["--mode", marked.mode.value, "--misses", str(self._misses)]
            options += _each("--ignore", marked.ignore)
            return [*PROGRAM, "tape", "serve", *options, "--", str(self.path)]
        options = ["--record-dir", str(self._recorded), *_each("--redact", marked.redact)]
        if marked.url:
            return [*PROGRAM, "proxy", *options, "--upstream", marked.url]
        return [*PROGRAM, "proxy", *options, "--", *marked.command]

    @property
    def url(self) -> str:
        """The server's address, for clients that speak Streamable HTTP; it is up from now on."""
        if self._background is None:
            from folkmoot.testing.recorded import Background

            self._background = Background(self._replaying if self.mode == "replay" else self._taped)
        return f"{self._background.value}/mcp"

    def missed(self) -> str:
        """What was asked for and is not on the tape, in lines; empty where there is nothing."""
        told = [error.message for error in (self._replay.misses if self._replay else ())]
        if self._misses.exists():
            lines = self._misses.read_bytes().splitlines()
            told += [msgspec.json.decode(line)["message"] for line in lines]
        if not told:
            return ""
        head = f"The test made requests that are not on {self.path}:"
        foot = "If that is intended, record it again with --tapes=record."
        return "\n".join([head, *(f"  {each}" for each in dict.fromkeys(told)), foot])

    def stop(self) -> None:
        """Stop the server of this test."""
        if self._background is not None:
            self._background.stop()

    def keep(self) -> None:
        """Keep what was recorded, if anything was."""
        if tapes := recorded_in(self._recorded):
            keep(tapes, self.path)

    @asynccontextmanager
    async def _replaying(self) -> AsyncIterator[str]:
        from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream
        from folkmoot.relay.steps import Steps
        from folkmoot.relay.tape_server import Replay

        clock, marked = SystemClock(), self._marked
        self._replay = Replay(read_tape(self.path), clock, mode=marked.mode, ignore=marked.ignore)
        options = ProxyOptions(discoverable=self._replay.script.discoverable)
        proxy = Proxy(Upstream(self._replay.connect), Steps(Chain(), None, clock), options)
        async with proxy.listening("127.0.0.1", 0) as url:
            yield url

    @asynccontextmanager
    async def _taped(self) -> AsyncIterator[str]:
        from folkmoot.relay.proxy import ProxiedServer, assembled
        from folkmoot.relay.recording import Recording

        marked = self._marked
        async with (
            assembled(
                ProxiedServer(marked.command, marked.url),
                SystemClock(),
                client=TapeSide("http"),
                recording=Recording(folder=self._recorded, paths=marked.redact),
            ) as proxy,
            proxy.listening("127.0.0.1", 0) as url,
        ):
            yield url


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def recorded_in(folder: Path) -> list[Path]:
    """The tapes of a folder on which something was said, in the order in which they began."""
    tapes = []
    for path in folder.glob("*.jsonl"):
        lines = list(follow_lines(path))
        if any(isinstance(line, MessageLine) for line in lines):
            tapes.append((lines[0].started if isinstance(lines[0], Header) else "", path))
    return [path for _, path in sorted(tapes)]


def keep(tapes: Sequence[Path], path: Path) -> None:
    """Write these tapes as one file, atomically replacing the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            for line in joined(tapes):
                opened.write(encode_line(line))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def joined(tapes: Sequence[Path]) -> Iterator[Line]:
    """The lines of several tapes as those of one: messages are numbered through."""
    last, count, end = 0, 0, None
    for number, path in enumerate(tapes):
        before = last
        for line in follow_lines(path):
            if isinstance(line, MessageLine):
                last, count = before + line.seq, count + 1
                yield msgspec.structs.replace(line, seq=last)
            elif isinstance(line, CorrelationLine):
                yield msgspec.structs.replace(
                    line, request=before + line.request, response=before + line.response
                )
            elif isinstance(line, EndLine):
                end = line
            elif number == 0:
                yield line
    if end is not None:
        yield msgspec.structs.replace(end, messages=count)


T = TypeVar("T")

STOP_SECONDS: Final = 10.0


class Background(Generic[T]):
    """Holds one context open in a thread, from when it is made until `stop`."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._entered: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._thread = threading.Thread(
            target=self._run, args=(enter,), name="folkmoot-tape", daemon=True
        )
        self._thread.start()
        self.value = self._entered.result()

    def stop(self) -> None:
        """Leave the context, ignoring its errors."""
        if self._loop is not None and self._asked is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._asked.set)
        self._thread.join(STOP_SECONDS)

    def _run(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        try:
            asyncio.run(self._hold(enter))
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits for it
            if not self._entered.done():
                self._entered.set_exception(error)

    async def _hold(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        async with enter() as value:
            self._entered.set_result(value)
            await self._asked.wait()
