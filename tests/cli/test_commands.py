"""What makes a function a command: options that are added, answers that are shown."""

from __future__ import annotations

from typing import Any

from folkmoot.cli.commands import every, plain_answer


def test_a_list_is_read_page_by_page_and_no_further_than_it_is_wanted():
    asked: list[str | None] = []

    def page(room: str, cursor: str | None = None) -> Any:
        asked.append(cursor)
        here = cursor or "1"
        following = {"1": "2", "2": "3", "3": None}[here]
        return type("Page", (), {"items": [f"{room}{here}"], "next_cursor": following})

    items = every(page, "items", "a")
    assert next(items) == "a1"
    assert asked == [None]
    assert list(items) == ["a2", "a3"]


def test_an_answer_without_a_way_of_its_own_is_a_line_for_each_member(capsys):
    plain_answer({"unread_count": 3, "done": True, "who": ["ada", "bob"], "last": None}).show(
        as_json=False
    )
    assert capsys.readouterr().out.splitlines() == [
        "Unread count  3",
        "Done          yes",
        "Who           ada, bob",
        "Last          -",
    ]
