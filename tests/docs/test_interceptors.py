"""The page about interceptors: its rules load, and its tables are those of the code."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from folkmoot.core.verdict import Block
from folkmoot.proxy.interceptors.descriptions import POISONS
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.rules.actions import ACTIONS
from folkmoot.proxy.rules.conditions import COMPARISONS
from folkmoot.proxy.rules.file import BUILT_IN
from folkmoot.proxy.rules.when import ABOUT_VALUES, NAMES
from tests.docs.pages import pages
from tests.proxy.rules.support import Clock, Way, call, envelope

PAGE = pages()["docs/interceptors.md"]
RULES = [block for block in PAGE.blocks if "[[rule]]" in block.text]
READABLE = [block for block in RULES if "plugin:" not in block.text]


def tables(text: str = PAGE.text) -> list[list[list[str]]]:
    """The tables of a text, each as rows of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows[2:]]
        for rows in (table.splitlines() for table in found)
    ]


def table(heading: str) -> list[list[str]]:
    """The table after a heading."""
    return tables(PAGE.text.partition(f"\n{heading}\n")[2])[0]


def codes(rows: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in rows]


@pytest.mark.parametrize("block", READABLE, ids=lambda block: f"line {block.line}")
def test_every_file_of_rules_on_the_page_is_read(block, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(block.text, encoding="utf-8")
    rules = Rules.load(path, clock=Clock(), groups=lambda _: ())
    assert len(rules.ruleset.rules) == block.text.count("[[rule]]")


def test_the_page_shows_every_interceptor_in_use():
    assert set(re.findall(r'use = "([a-z-]+)"', PAGE.text)) == set(BUILT_IN)
    assert len(RULES) == len(READABLE) + 1


@pytest.mark.parametrize(
    ("path", "stopped"),
    [
        ("/srv/shared/a", False),
        ("/srv/shared", False),
        ("/srv/shared/../x", True),
        ("/etc/passwd", True),
        (None, False),
    ],
)
def test_the_rules_about_a_folder_do_what_the_page_says(path, stopped):
    (text,) = (block.text for block in READABLE if "shared folder" in block.text)
    arguments = {} if path is None else {"path": path}
    verdict = Way(text).judge(call("read_file", arguments)).verdict
    assert isinstance(verdict, Block) is stopped


def test_the_tables_of_conditions_comparisons_and_actions_are_complete():
    asked = {*codes(table("## Which messages"))}
    rows = next(rows for rows in tables() if rows[0][0] == "`is`")
    assert asked | {*codes(rows)} == set(NAMES)
    assert {*codes(rows)} == ABOUT_VALUES
    told = {row[0].strip("`"): row[1] for row in rows}
    assert all(told[name] == asks for name, (asks, _) in COMPARISONS.items())
    actions = table("## What becomes of them")
    assert {row[0].strip("`"): row[1] for row in actions} == {
        name: known.does for name, known in ACTIONS.items()
    }
    for row, known in zip(actions, ACTIONS.values(), strict=True):
        options = [field.encode_name for field in msgspec.structs.fields(known.options)]
        assert re.findall(r"`(\w+)`", row[2]) == options


def test_the_table_of_interceptors_is_that_of_the_code():
    rows = table("## Built-in interceptors")
    expected = [[f"`{each.name}`", each.does] for each in BUILT_IN.values()]
    assert rows == expected


def default(field: Any) -> str | None:
    """A default as the page writes it, where it can be told."""
    if field.required:
        return "needed"
    value = field.default
    shown = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None
    if shown is None and isinstance(value, str | float):
        shown = f'"{value}"' if isinstance(value, str) else str(value)
    return None if shown is None else f"`{shown}`"


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_option_is_told_with_its_default(name):
    rows = {row[0].strip("`"): row for row in table(f"### {name}")}
    fields = {field.name: field for field in msgspec.structs.fields(BUILT_IN[name].options)}
    assert list(rows) == list(fields)
    for option, field in fields.items():
        expected = default(field)
        assert expected is None or rows[option][1] == expected, option
        assert rows[option][2]


def test_the_table_of_poisons_is_that_of_the_code():
    (rows,) = (rows for rows in tables() if rows[0][0] == "`hidden-tags`")
    assert rows == [[f"`{poison.name}`", poison.what] for poison in POISONS]


def test_the_interceptor_of_the_page_works():
    (block,) = (block for block in PAGE.blocks if block.language == "python")
    names: dict[str, Any] = {}
    exec(compile("\n" * block.line + block.text, PAGE.name, "exec"), names)
    curfew = names["Curfew"]({"tool": "party"})
    saying = curfew.intercept(envelope(call("party")))
    with pytest.raises(StopIteration) as said:
        saying.send(None)
    assert isinstance(said.value.value, Block)
