"""A program that starts hubs quickly: everything is loaded, and each hub is forked from it.

Most of a start is loading; a test that kills hundreds of hubs pays for it once. Each hub is a
process of its own and runs the command that people run. It is told by lines: one starts a hub, the
next one waits until that has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import folkmoot.app  # noqa: F401 - what `serve` would load
from folkmoot.cli.program import main as command


def serve(folder: str) -> None:
    sys.argv = ["folkmoot", "serve", "--port", "0", "--data", folder]
    command()


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(folder: str) -> None:
    assert threading.active_count() == 1, "a thread would be lost in the fork"
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            serve(folder)
            return
        tell(f"Forked {pid}")
        if not sys.stdin.readline():
            # The test has ended without its hub.
            os.kill(pid, signal.SIGKILL)
        # Only now: whoever kills the hub must be sure that the number is still its own.
        _, status = os.waitpid(pid, 0)
        tell(f"Ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main(sys.argv[1])
