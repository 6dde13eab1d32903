"""What makes a function a command: options that are added, answers that are shown."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any

import pytest

from folkmoot.cli.commands import Note, Output, WhenUsed, every, plain_answer, shown, with_options
from folkmoot.cli.options import option

NameOption = Annotated[str | None, option("--name", "NAME", "Whose.")]
PlaceOption = Annotated[str | None, option("--place", "PLACE", "Where.")]


def greet(hub: Nobody, name: NameOption = None, *, loud: bool = False) -> Output:  # type: ignore[name-defined]  # noqa: F821
    """Greet someone."""
    text = f"Hello {name} at {hub}"
    return Output({"said": text}, text.upper() if loud else text, Note("Nobody answers."), None)


def command() -> Any:
    options = {"place": PlaceOption}
    return shown(with_options(greet, options, ("hub",), lambda chosen, _: {"hub": chosen["place"]}))


def test_added_options_stand_behind_a_commands_own_and_json_is_last() -> None:
    made = command()
    assert list(inspect.signature(made).parameters) == ["name", "place", "loud", "as_json"]
    assert (made.__name__, made.__doc__) == ("greet", "Greet someone.")


def test_an_answer_is_text_for_people_and_json_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command()(name="ada", place="home", loud=True, as_json=False)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("HELLO ADA AT HOME\n", "Nobody answers.\n")
    command()(name="ada", place="home", loud=True, as_json=True)
    told = capsys.readouterr()
    assert (told.out, told.err) == ('{\n  "said": "Hello ada at home"\n}\n', "")


def test_what_a_command_works_with_is_opened_once_and_only_when_it_is_used() -> None:
    opened: list[str] = []

    def opens() -> str:
        opened.append("opened")
        return "a hub"

    hub = WhenUsed(cache(opens))
    assert opened == []
    assert (hub.upper(), hub.title()) == ("A HUB", "A Hub")
    assert opened == ["opened"]


def test_a_list_is_read_page_by_page_and_no_further_than_it_is_wanted() -> None:
    asked: list[str | None] = []

    def page(room: str, cursor: str | None) -> Any:
        asked.append(cursor)
        here = cursor or "1"
        following = {"1": "2", "2": "3", "3": None}[here]
        return type("Page", (), {"items": [f"{room}{here}"], "next_cursor": following})

    items = every(page, "items", "a")
    assert next(items) == "a1"
    assert asked == [None]
    assert list(items) == ["a2", "a3"]


def test_an_answer_without_a_way_of_its_own_is_a_line_for_each_member(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain_answer({"unread_count": 3, "done": True, "who": ["ada", "bob"], "last": None}).show(
        as_json=False
    )
    assert capsys.readouterr().out.splitlines() == [
        "Unread count  3",
        "Done          yes",
        "Who           ada, bob",
        "Last          -",
    ]
