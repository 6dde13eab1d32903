"""One entry more in a JSON file, and every other character as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.cli.client_files import put_json_entry, read_object
from folkmoot.core import errors as e

ENTRY = {"type": "http", "url": "http://h/mcp"}


def put(text: str, *, force: bool = False, entry: dict[str, Any] = ENTRY) -> str:
    return put_json_entry(text, "servers", "moot", entry, force=force)


def test_a_file_that_is_empty_gets_the_entry_alone():
    for text in ("", " \n"):
        assert json.loads(put(text)) == {"servers": {"moot": ENTRY}}


def test_comments_and_the_way_a_file_is_indented_stay():
    before = """\
// my servers
{
    /* kept */ "inputs": [1, 2,], // so is this
    "servers": {
        "one": {"url": "http://one"}, // the first
        // "two": {},
    },
}
"""
    last, deep = '        // "two": {},\n', " " * 12
    added = f'        "moot": {{\n{deep}"type": "http",\n{deep}"url": "http://h/mcp"\n        }}\n'
    assert put(before) == before.replace(last, last + added)


def test_a_comma_goes_where_one_is_missing():
    assert put('{\n  "servers": {\n    "one": 1 // last\n  }\n}\n', entry={}) == (
        '{\n  "servers": {\n    "one": 1, // last\n    "moot": {}\n  }\n}\n'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "servers": {\n    "moot": {}\n  }\n}'),
        ('{"a": 1}\n', '{"a": 1,\n  "servers": {\n    "moot": {}\n  }\n}\n'),
        ('{"servers": {}}', '{"servers": {\n    "moot": {}\n  }}'),
        ('{\n\t"servers": {}\n}', '{\n\t"servers": {\n\t\t"moot": {}\n\t}\n}'),
        ('{\r\n  "a": 1\r\n}', '{\r\n  "a": 1,\r\n  "servers": {\r\n    "moot": {}\r\n  }\r\n}'),
        ('\ufeff{\n "a": 1\n}', '\ufeff{\n "a": 1,\n "servers": {\n  "moot": {}\n }\n}'),
    ],
)
def test_whatever_a_file_looks_like_the_entry_looks_the_same(before, after):
    assert put(before, entry={}) == after


def test_an_entry_that_is_there_is_replaced_only_by_force():
    before = '{\n  "servers": {\n    "moot": {"url": "old"}, // mine\n    "b": 1\n  }\n}\n'
    with pytest.raises(e.ClientFileUnusable, match='already has an entry "moot"'):
        put(before)
    assert put(before, force=True) == (
        '{\n  "servers": {\n    "moot": {\n      "type": "http",\n      "url": "http://h/mcp"\n'
        '    }, // mine\n    "b": 1\n  }\n}\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "{", "}", "[]", "1", "null", '{"a": }', '{"a" 1}', "{'a': 1}", '{"a": 1 "b": 2}', "{,}",
        '{"a": 01}', '{"a": "\n"}', '{"a": 1} x', "/* open", '{"servers": []}', '{"servers": 1}',
        '{"servers": {}, "servers": {}}', '{"servers": {"moot": 1, "moot": 2}}', "[" * 5000,
        '{"a":' * 5000, '{"a": NaN}', '{"a": tru}', '{1: 2}', '{"a": "\\x"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", [False, True])
def test_what_cannot_be_read_for_certain_is_refused(text, force):
    with pytest.raises(e.ClientFileUnusable):
        put(text, force=force)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.long
@given(
    st.dictionaries(TEXTS, VALUES, max_size=4),
    st.dictionaries(TEXTS, VALUES, max_size=4) | st.none(),
    st.sampled_from([None, 1, 2, 4, "\t"]),
)
def test_nothing_else_in_any_file_is_changed(root, servers, indent):
    root.pop("servers", None)
    if servers is not None:
        servers.pop("moot", None)
        root["servers"] = servers
    before = json.dumps(root, indent=indent)
    assert json.loads(put(before)) == {**root, "servers": {**(servers or {}), "moot": ENTRY}}
    assert read_object(before)[0] == root
