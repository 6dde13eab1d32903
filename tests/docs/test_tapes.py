"""What the page on tapes shows is what the commands print."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from folkmoot.cli import program
from tests.docs.pages import pages
from tests.proxy.tape.studio import conversation, handshake, recording


def shown() -> list[tuple[str, str]]:
    """Each command of the page that is followed by what it prints."""
    blocks = pages()["docs/tapes.md"].blocks
    return [
        (before.text.strip(), after.text)
        for before, after in pairwise(blocks)
        if before.language == "sh" and after.language == "text"
    ]


@pytest.fixture
def tapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tape of the page, in the folder where its commands are run."""
    monkeypatch.chdir(tmp_path)
    conversation(tmp_path / "session.jsonl")


def test_the_page_shows_several_commands_with_what_they_print():
    assert [shlex.split(command)[2] for command, _ in shown()] == [
        "list", "show", "show", "diff",
    ]  # fmt: skip


@pytest.mark.usefixtures("tapes")
@pytest.mark.parametrize(
    ("command", "printed"), [each for each in shown() if "diff" not in each[0]]
)
def test_a_command_prints_what_the_page_shows(capsys, command, printed):
    assert program.run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr() == (printed, "")


def test_a_comparison_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, tools, words in (
        ("session", ("echo", "add"), "Echo: hello"),
        ("later", ("echo", "now"), "echo says hello"),
    ):
        with recording(tmp_path / f"{name}.jsonl") as studio:
            handshake(studio, tools)
            studio.tool(2, "echo", words, message="hello")
    (command, printed), *_ = [each for each in shown() if "diff" in each[0]]
    assert program.run(shlex.split(command)[1:]) == 1
    assert capsys.readouterr().out == printed
