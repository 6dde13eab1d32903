"""Lines on their way to a file of the system, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

START = """
import logging, os, sys, threading, warnings
from folkmoot.telemetry import lines, logs
logs.configure("info", "json")
log = logging.getLogger("folkmoot.test")
"""


def program(text: str) -> list[str]:
    return [sys.executable, "-c", START + textwrap.dedent(text)]


def messages(output: bytes) -> list[str]:
    return [json.loads(line)["message"] for line in output.splitlines()]


def said(text: str, code: int = 0) -> list[str]:
    done = subprocess.run(program(text), capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout == b""
    return messages(done.stderr)


def test_every_line_comes_out_in_order_before_the_end():
    expected = [str(n) for n in range(5000)]
    assert said("for n in range(5000): log.info(str(n))") == expected


def test_an_error_on_the_way_out_still_comes_out():
    text = """
    import atexit
    atexit.register(lambda: log.error("in atexit"))
    log.error("before")
    logging.shutdown()
    log.error("after the shutdown of logging")
    sys.exit(3)
    """
    assert said(text, 3) == ["before", "after the shutdown of logging", "in atexit"]


def test_threads_and_forked_processes_log_as_well():
    text = """
    log.info("parent")
    thread = threading.Thread(target=log.info, args=("thread",))
    thread.start()
    thread.join()
    logging.getLogger().handlers[0].flush()
    # Newer Pythons warn of a fork beside threads, which is what is tried here.
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    log.info("forked" if child == 0 else "forking")
    if child == 0:
        logging.shutdown()
        os._exit(0)
    os.waitpid(child, 0)
    """
    found = said(text)
    assert found[:2] == ["parent", "thread"]
    assert sorted(found[2:]) == ["forked", "forking"]


def test_a_line_that_nobody_reads_holds_up_neither_the_program_nor_its_end():
    unread, pipe = os.pipe()
    text = """
    lines.MAX_QUEUED_LOG_BYTES = 100_000
    lines.FLUSH_SECONDS = 0.1
    for n in range(10_000): log.info("x" * 100)
    print(lines.dropped.lines, flush=True)
    """
    try:
        started = time.monotonic()
        done = subprocess.run(
            program(text), stdout=subprocess.PIPE, stderr=pipe, timeout=60, check=False
        )
        assert time.monotonic() - started < 30
    finally:
        os.close(pipe)
        os.close(unread)
    assert done.returncode == 0
    assert int(done.stdout) > 5000


def test_what_was_dropped_is_told_where_it_is_missing():
    text = """
    lines.MAX_QUEUED_LOG_BYTES = 100_000
    for n in range(5000): log.info(str(n))
    print(lines.dropped.lines, flush=True)
    sys.stdin.readline()
    logging.getLogger().handlers[0].flush()
    log.info("read again")
    """
    with subprocess.Popen(
        program(text), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        count = int(child.stdout.readline())
        _, errors = child.communicate(b"\n", timeout=60)
    assert count > 0
    *said, last = messages(errors)
    number, told = 0, 0
    for line in said:
        if found := re.fullmatch(r"(\d+) log lines were dropped", line):
            told += int(found[1])
            number += int(found[1])
        else:
            assert line == str(number)
            number += 1
    assert (number, told, last) == (5000, count, "read again")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_device_that_is_full_costs_lines_and_nothing_else():
    text = """
    for n in range(10): log.info("x")
    logging.getLogger().handlers[0].flush()
    print(lines.dropped.lines)
    """
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            program(text), stdout=subprocess.PIPE, stderr=full, timeout=60, check=True
        )
    assert done.stdout == b"10\n"


def test_a_first_line_that_is_written_while_the_interpreter_ends_does_not_hold_it_up():
    last_words = """
        class Last:
            def __del__(self, say=log.info):
                say("at last")
        last = Last()
    """
    assert said(last_words) == ["at last"]
