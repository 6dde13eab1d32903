"""What makes a function a command: options that are added, answers that are shown."""

from __future__ import annotations

import json
from typing import Any

from folkmoot.cli.commands import Note, Output, Warned, every, plain_answer


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


def test_programs_get_json_alone_on_standard_output_and_warnings_beside_it(capsys):
    Output({"id": 1}, "Done.", Note("By the way."), Warned("keep a copy.")).show(as_json=True)
    shown = capsys.readouterr()
    assert (json.loads(shown.out), shown.err) == ({"id": 1}, "folkmoot: warning: keep a copy.\n")
    Output({"id": 1}, "Done.", None, Warned("keep a copy.")).show(as_json=False)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("Done.\n", "folkmoot: warning: keep a copy.\n")


def test_what_was_said_in_a_sentence_alone_is_json_too(cli, tmp_path):
    made = json.loads(cli("keys", "create", "--json").out)
    assert made["path"] == f"{tmp_path}/.folkmoot/master.key"
    assert set(made) == {"id", "path"}
