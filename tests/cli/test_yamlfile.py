"""One entry more in a YAML file, and every other line as it was."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.cli.yamlfile import put_entry
from folkmoot.core.errors import ClientFileUnusable

ENTRY: dict[str, Any] = {"enabled": True, "uri": "http://h/mcp", "headers": {"A": "b: c"}}
SHOWN = """\
  moot:
    enabled: true
    uri: "http://h/mcp"
    headers:
      A: "b: c"
"""


def put(text: str, *, force: bool = False) -> str:
    return put_entry(text, "extensions", "moot", ENTRY, force=force)


def test_a_file_that_is_empty_gets_the_entry_alone() -> None:
    assert put("") == f"extensions:\n{SHOWN}"


def test_a_file_without_the_table_gets_it_at_the_end() -> None:
    before = "---\n# mine\nGOOSE_MODEL: gpt\nlist:\n- a\n- b\ntext: |\n  extensions:\n    x: 1\n"
    assert put(before) == f"{before}extensions:\n{SHOWN}"


def test_the_entry_goes_behind_the_others_and_comments_stay() -> None:
    before = """\
GOOSE_PROVIDER: x
extensions:  # what goose can do
  developer:
    enabled: true
    # inside
    args: ["a",
      "b"]

  # the second
  "memory":
    text: >
      moot: not an entry

# below
other: {a: 1}
"""
    head, below = before.split("\n# below")
    assert put(before) == f"{head.rstrip()}\n{SHOWN}\n# below{below}"


@pytest.mark.parametrize("value", ["", " {}", " null", " ~", "  # none yet", " { }"])
def test_a_table_that_is_empty_is_filled(value: str) -> None:
    after = put(f"a: 1\nextensions:{value}\nb: 2\n")
    title = "extensions:  # none yet" if "#" in value else "extensions:"
    assert after == f"a: 1\n{title}\n{SHOWN}b: 2\n"


def test_the_indentation_of_the_others_is_taken() -> None:
    after = put("extensions:\n    one:\n        a: 1\n")
    assert after.splitlines()[3:5] == ["    moot:", "      enabled: true"]


def test_line_ends_stay() -> None:
    after = put("a: 1\r\nextensions:\r\n  one: {}\r\n")
    assert after.count("\r\n") == after.count("\n") == 8


def test_an_entry_that_is_there_is_replaced_only_by_force() -> None:
    before = (
        "extensions:\n  moot:\n    uri: old\n    env:\n      a: 1\n\n  # next\n  two:\n    b: 2\n"
    )
    with pytest.raises(ClientFileUnusable, match='already has an entry "moot"'):
        put(before)
    assert put(before, force=True) == f"extensions:\n{SHOWN}\n  # next\n  two:\n    b: 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "extensions: [a]\n", "extensions: {a: 1}\n", "extensions: &x\n  a: 1\n",
        "extensions: text\n", "extensions:\n- a\n", "extensions:\n  - a\n", "{extensions: 1}\n",
        "extensions:\n  a: 1\nextensions:\n  b: 1\n", "a: 1\n---\nextensions:\n  b: 1\n",
        "%YAML 1.2\n---\na: 1\n", "? a\n: b\n", "extensions:\n\ta: 1\n", "just text\n",
        'a: "open\nextensions: in a text"\n', "a: 'it\nextensions:\n", "a: {\nextensions:\n}\n",
        "extensions:\n    a: 1\n  b: 2\n", "extensions:\n  a: 1\n  a: 2\n", "...\na: 1\n",
        "extensions:\n  <<: *base\n", "extensions: !!map\n  a: 1\n", "- a\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", [False, True])
def test_what_cannot_be_read_for_certain_is_refused(text: str, force: bool) -> None:
    with pytest.raises(ClientFileUnusable):
        put(text, force=force)
