"""What makes a fork like a process newly started: its streams, signals, limits and surroundings."""

from __future__ import annotations

import io
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

UNBUFFERED = "PYTHONUNBUFFERED"
DEFAULT = {signal.SIGINT: signal.default_int_handler}


class Surroundings(NamedTuple):
    """What a process takes over from the one that starts it."""

    arguments: list[str]
    environ: dict[str, str]
    folder: str
    # The signals that are ignored; any other does what it does by default.
    ignored: list[int]
    limits: list[tuple[int, tuple[int, int]]]


def take(surroundings: Surroundings, streams: Sequence[int]) -> None:
    """Be a process with these surroundings and standard streams."""
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    os.environ.clear()
    os.environ.update(surroundings.environ)
    time.tzset()
    os.chdir(surroundings.folder)
    for limit, values in surroundings.limits:
        soft, hard = values
        if resource.getrlimit(limit) != (soft, hard):
            resource.setrlimit(limit, (soft, hard))
            # Where files cannot grow, Python would leave a compiled module cut short for everyone.
            sys.dont_write_bytecode = True
    sys.argv = surroundings.arguments
    set_streams(surroundings.environ)
    set_signals(frozenset(surroundings.ignored))


def set_streams(environ: Mapping[str, str]) -> None:
    """Open the three streams anew, as Python does when it starts."""
    unbuffered = bool(environ.get(UNBUFFERED))
    opened: dict[str, Any] = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    for number, (name, before) in enumerate(opened.items()):
        writes = name != "stdin"
        mode, buffering = ("wb", 0 if unbuffered else -1) if writes else ("rb", -1)
        binary = open(number, mode, buffering=buffering, closefd=False)  # noqa: SIM115
        text = {"encoding": before.encoding, "errors": before.errors}
        flushed = {"line_buffering": name == "stderr" or binary.isatty()}
        flushed["write_through"] = unbuffered and writes
        stream = io.TextIOWrapper(binary, newline="\n" if writes else None, **text, **flushed)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def set_signals(ignored: frozenset[int]) -> None:
    """Ignore these signals, and those that Python ignores; heed all others."""
    silent = ignored | {signal.SIGPIPE, signal.SIGXFSZ}
    for number in signal.valid_signals():
        wanted: Any = signal.SIG_IGN if number in silent else DEFAULT.get(number, signal.SIG_DFL)
        # There is no handler where it is not ours to set.
        if signal.getsignal(number) not in {None, wanted}:
            signal.signal(number, wanted)
