"""`--header`: written the same for every command that asks a server."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.main import get_command

from folkmoot.cli.options import FORM, sent_headers, written_headers
from folkmoot.cli.program import app


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    monkeypatch.setenv("SPLIT", "s3cret\r\nX-Evil: 1")
    monkeypatch.delenv("NOBODY", raising=False)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Authorization: Bearer $TOKEN", "Bearer s3cret"),
        ("Authorization: Bearer ${TOKEN}", "Bearer s3cret"),
        ("Authorization:Bearer env:TOKEN", "Bearer s3cret"),
        ("Authorization=Bearer env:TOKEN", "Bearer s3cret"),
        ("Authorization = $TOKEN", "s3cret"),
        ("Authorization: Bearer file:{file}", "Bearer s3cret"),
        ("Authorization: a=b: c", "a=b: c"),
        ("Authorization: costs $$5 and $5", "costs $5 and $5"),
        ("Authorization:", ""),
    ],
)
def test_a_secret_is_taken_from_where_it_is_kept(text, sent, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    assert sent_headers([text.format(file=tmp_path / "token", TOKEN="{TOKEN}")]) == {
        "Authorization": sent
    }


def test_the_settings_hold_the_place_and_not_the_secret(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert written_headers(["A: Bearer $TOKEN", "B: env:TOKEN", "C: x file:token", "D: plain"]) == {
        "A": {"env": "TOKEN", "prefix": "Bearer "},
        "B": {"env": "TOKEN"},
        "C": {"file": str(tmp_path / "token"), "prefix": "x "},
        "D": "plain",
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["X: $NOBODY"], "the environment variable NOBODY is not set"),
        (["X: $SPLIT"], "the value of X has more than one line"),
        (["X: s3cret\nY: 1"], "the value of X has more than one line"),
        (["Bearer s3cret"], "--header must be 'NAME: VALUE'"),
        (["X: $TOKEN-5"], "a variable must be the last word of the value of X"),
        (["X: ${TOKEN} s3cret"], "a variable must be the last word"),
        (["X: 1", "x=2"], "--header names x twice"),
        (["X: file:/nowhere/token"], "/nowhere/token: no such file or directory"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(given, why):
    with pytest.raises(typer.BadParameter) as caught:
        sent_headers(given)
    assert why in str(caught.value)
    assert "s3cret" not in str(caught.value)


def options(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    found = [(" ".join(path), it) for it in command.params if "--header" in it.opts]
    for name, inner in getattr(command, "commands", {}).items():
        found += options(inner, (*path, name))
    return found


def test_every_command_takes_headers_in_the_same_form():
    found = options(get_command(app))
    assert len(found) >= 6
    for name, option in found:
        assert option.metavar == FORM, name
        assert "$NAME, env:NAME or file:PATH as the last word" in option.help, name
