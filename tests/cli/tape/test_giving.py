"""`folkmoot tape redact` and `export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from folkmoot.proxy.tape import read_tape
from tests.proxy.tape.studio import recording

TOKEN = "ghp_" + "a" * 36


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    with recording(tmp_path / "s.jsonl") as studio:
        studio.tool(1, "login", f'{{"again": "{TOKEN}"}}', token=TOKEN, ssn="12-34")
        studio.tool(2, "echo", "plain")
    return tmp_path / "s.jsonl"


def test_a_tape_is_redacted_into_a_new_one_and_what_was_replaced_is_told(here, secret):
    before = secret.read_bytes()
    ran = here("redact", "s.jsonl", "r.jsonl", "--path", "$..ssn", "--redaction-key", "key")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "Replaced 3 places in 2 messages of 4; the new tape is r.jsonl.",
        "     1  known by their names",
        "     1  named by paths",
        "     1  known by their form",
    ]
    made = secret.with_name("r.jsonl")
    assert secret.read_bytes() == before
    assert TOKEN.encode() not in made.read_bytes()
    assert b"12-34" not in made.read_bytes()
    assert len(read_tape(made).entries) == 4
    assert (made.stat().st_mode & 0o777, secret.with_name("key").stat().st_mode & 0o777) == (
        0o600, 0o600,
    )  # fmt: skip
    again = here("redact", "r.jsonl", "r2.jsonl", "--redaction-key", "key")
    assert again.out == "Nothing to redact; r2.jsonl has the same content.\n"


def test_tapes_of_a_folder_are_redacted_with_its_key(here, secret):
    key = secret.with_name(".redaction-key")
    key.write_text("ab" * 32)
    key.chmod(0o600)
    told = [
        json.loads(here("redact", "--json", "s.jsonl", name, *options).out)
        for name, options in (("1.jsonl", ()), ("2.jsonl", ("--redaction-key", ".redaction-key")))
    ]
    assert (told[0]["key"], told[0]["places"]) == (told[1]["key"], 2)


def test_a_tape_is_never_written_over(here, secret):
    ran = here("redact", "s.jsonl", "s.jsonl", "--redaction-key", "key")
    assert ran.code == 1
    assert "already exists" in ran.err
    assert len(read_tape(secret).entries) == 4


def test_an_export_goes_to_stdout_or_to_a_private_file_that_appears_whole(here, tape):
    printed = here("export", "a.jsonl").out
    assert len(json.loads(printed)["messages"]) == 20
    out = tape.with_name("out.json")
    assert here("export", "a.jsonl", "-o", "out.json").err == "Wrote out.json.\n"
    assert out.read_text() == printed
    assert out.stat().st_mode & 0o777 == 0o600
    ran = here("export", "a.jsonl", "-o", "out.json", "--format", "har")
    assert ran.err == ("folkmoot: error: out.json: already exists. --overwrite replaces it.\n")
    here("export", "a.jsonl", "-o", "out.json", "--format", "har", "--overwrite")
    assert json.loads(out.read_text())["log"]["version"] == "1.2"


def test_a_broken_tape_leaves_no_half_export(here, tape):
    lines = tape.read_bytes().splitlines(keepends=True)
    tape.write_bytes(b"".join([*lines[:9], b"{broken\n", *lines[9:]]))
    ran = here("export", "a.jsonl", "-o", "out.md", "--format", "markdown")
    assert ran.code == 1
    assert "line 10 cannot be read" in ran.err
    assert [path.name for path in tape.parent.iterdir()] == ["a.jsonl"]


def test_a_part_of_a_tape_can_be_exported(here, tape):
    document = json.loads(here("export", "a.jsonl", "--from", "6", "--to", "7").out)
    assert [message["seq"] for message in document["messages"]] == [6, 7]
    assert [tie["request"] for tie in document["correlations"]] == [6]
