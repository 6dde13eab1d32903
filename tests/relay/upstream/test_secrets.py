"""Values that are not in the settings, and how little of ours a server gets to know."""

from __future__ import annotations

import logging
import os

import pytest

from folkmoot.core import errors as e
from folkmoot.relay.upstream import connecting
from folkmoot.relay.upstream.connecting import ChildLog, Connecting
from folkmoot.relay.upstream.secrets import child_environment, headers_of
from folkmoot.settings.backends import SecretReference
from folkmoot.telemetry.redaction import clean
from tests.relay.upstream.scripted import CLOCK, spec

VALUE = "opensesame-4711"


def test_headers_are_resolved_and_what_was_secret_in_them_is_hidden_from_logs(tmp_path):
    (tmp_path / "key").write_text(f"{VALUE}\n")
    named = {"X-Key": SecretReference(file=str(tmp_path / "key")), "Accept-Language": "de"}
    assert headers_of(named, {}).pairs == (("x-key", VALUE), ("accept-language", "de"))
    assert VALUE not in clean(f"it said {VALUE} aloud")


def test_a_file_that_holds_no_secret_is_named_and_not_shown(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("x" * 100_000)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for made in ("nothing", "folder", "pipe", "large", "binary"):
        path = str(tmp_path / made)
        with pytest.raises(e.BackendUnavailable, match="variable KEY is missing: the file") as told:
            child_environment({"KEY": SecretReference(file=path)}, {})
        assert path in told.value.message


def test_what_is_shown_of_a_target_opens_no_door():
    url = Connecting(spec(url="https://me:pass@example.org/mcp?key=secret#x"), CLOCK, {})
    assert (url.target, url.transport) == ("https://example.org/mcp", "http")
    command = Connecting(spec(command=("npx", "server", "--token=hunter2hunter2")), CLOCK, {})
    assert "hunter2" not in command.target
    assert command.target.startswith("npx server")
    assert Connecting(spec(url="no url at all"), CLOCK, {}).target
    assert Connecting(spec(url="http://x.org/sse", transport="sse"), CLOCK, {}).transport == "sse"


def test_the_log_of_a_child_is_ours_line_by_line_but_never_a_flood_of_it(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "folkmoot.backend")
    now = [0.0]
    log = ChildLog("demo", lambda: now[0])
    for n in range(1000):
        log(f"line {n}\r".encode())
    log(b"  ")
    assert len(caplog.records) == connecting.LINES_AT_ONCE
    assert (caplog.records[0].getMessage(), caplog.records[0].backend) == ("line 0", "demo")
    assert log.telling() == "line 999"
    now[0] = 1.0
    log(b"later \xff")
    assert caplog.records[-1].left_out == 900


NODE = """\
node:internal/modules/cjs/loader:1433
  throw err;
  ^

Error: Cannot find module '/srv/server.js'
    at Function._resolveFilename (node:internal/modules/cjs/loader:1430:15)
  code: 'MODULE_NOT_FOUND',
}

Node.js v22.23.2
"""
NPM = """\
npm warn deprecated old@1.0.0: failed its audit
npm error code E404
npm error 404 Not Found - GET https://example.org/nothing
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /root/debug.log
"""
PYTHON = """\
Traceback (most recent call last):
  File "/srv/errors/error.py", line 1, in <module>
    raise KeyError("dsn")
KeyError: 'dsn'

The above exception was the direct cause of the following exception:

RuntimeError: No database
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (NODE, "Error: Cannot find module '/srv/server.js'"),
        (NPM, "npm error code E404 npm error 404 Not Found - GET https://example.org/nothing"),
        (PYTHON, "RuntimeError: No database"),
        ("loading\nThis package needs Node 24\nbye\n", "This package needs Node 24"),
        ("Error: no key\nError: no key\n", "Error: no key"),
        ("one\ntwo\n", "two"),
        ("", ""),
    ],
    ids=["node", "npm", "python", "words", "twice", "last", "nothing"],
)
def test_of_what_a_server_wrote_operators_are_told_the_line_that_says_why(written, told):
    log = ChildLog("demo", CLOCK.monotonic)
    for line in written.encode().splitlines():
        log(line)
    assert log.telling() == told
    log.forget()
    assert log.telling() == ""
