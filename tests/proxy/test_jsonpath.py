"""Paths into JSON: the one language of rules, redaction and comparison."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.proxy.jsonpath import MISSING, Item, JsonPath, Place, spelled

DATA: dict[str, Any] = {"a": {"b c": [{"x": 1}, {"x": 2}, 3], "d": None}, "e": []}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$", [DATA]),
        ("$.a.d", [None]),
        ("$.a['b c'][0].x", [1]),
        ('$["a"]["b c"][*].x', [1, 2]),
        ("$.a.*", [DATA["a"]["b c"], None]),
        ("$.e[*]", []),
        ("$.a[0]", []),
        ("$.a['b c'][9]", []),
        ("$..x", [1, 2]),
        ("$.a..[1]", [{"x": 2}]),
        ("$..['b c']..x", [1, 2]),
        ("$.e..x", []),
    ],
)
def test_a_path_leads_to_values(text, expected):
    assert JsonPath(text).select(DATA) == expected


def test_what_is_nested_in_itself_is_found_once_at_each_depth():
    nested: Any = {"a": {"a": {"a": 1}}}
    assert JsonPath("$..a").select(nested) == [nested["a"], nested["a"]["a"], 1]
    assert JsonPath("$..a..a").select(nested) == [nested["a"]["a"], 1]
    assert JsonPath("$..*..*").select(nested) == [nested["a"]["a"], 1]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("$['it\\'s']", "it's"),
        ("$['\"']", '"'),
        ('$["it\'s"]', "it's"),
        ('$["\\u00e9\\n"]', "é\n"),
        ("$['\\\\']", "\\"),
        ("$['']", ""),
        ("$.$ref", "$ref"),
    ],
)
def test_any_name_can_be_quoted(text, name):
    assert JsonPath(text).select({name: 1}) == [1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must start with $"),
        ("result", "must start with $"),
        ("$.", "'.' is not understood"),
        ("$..", "'..' is not understood"),
        ("$...a", "'...a' is not understood"),
        ("$.a b", "' b' is not understood"),
        ("$[-1]", 'write ["-1"] with quotes'),
        ("$.tools[echo].title", 'write ["echo"] with quotes'),
        ("$.a[b c]", 'write ["b c"] with quotes'),
        ("$.a[", "'[' is not understood"),
        ("$result", "'result' is not understood"),
        ("$['\\q']", "'\\q' is not a JSON string"),
        ('$["\n"]', '"\n" is not a JSON string'),
        ("$['a", '"[\'a" is not understood'),
        ("$." + "a" * 1_100, "at most 1,024 characters"),
    ],
)
def test_what_is_no_path_is_refused_in_a_sentence_that_says_why(text, why):
    with pytest.raises(e.PathSyntax, match=re.escape(why)) as refused:
        JsonPath(text)
    assert len(refused.value.message) < 250
    with pytest.raises(e.PathSyntax):
        JsonPath.below(text)


def test_the_message_as_a_whole_is_nothing_to_redact_or_ignore():
    with pytest.raises(e.PathSyntax, match="a part of the message"):
        JsonPath.below("$")
    assert JsonPath.below("$.a").root == "a"
    assert JsonPath("$").root is JsonPath("$..a").root is JsonPath("$.*").root is None


def test_an_edit_shares_what_it_does_not_change_and_leaves_the_original_alone():
    changed = JsonPath("$.a['b c'][*].x").edit(DATA, lambda _: 9)
    assert changed["a"]["b c"] == [{"x": 9}, {"x": 9}, 3]
    assert changed["e"] is DATA["e"]
    assert JsonPath("$..x").edit(DATA, lambda _: 9) == {
        **DATA,
        "a": {"b c": [{"x": 9}, {"x": 9}, 3], "d": None},
    }
    assert JsonPath("$.a['b c'][0].x").select(DATA) == [1]
    assert JsonPath("$.a.nowhere").edit(DATA, lambda value: value) is DATA
    assert JsonPath("$..nowhere").edit(DATA, lambda _: 1) is DATA
    assert JsonPath("$.new.deep").edit({}, lambda _: 1) == {"new": {"deep": 1}}
    assert JsonPath("$.new..deep").edit({}, lambda _: 1) == {}
    assert JsonPath("$.new[0]").edit({}, lambda _: 1) == {}
    assert JsonPath("$").edit(DATA, lambda _: 1) == 1
    assert JsonPath("$.a['b c'][1]").edit(DATA, lambda _: MISSING)["a"]["b c"] == [{"x": 1}, 3]
    assert JsonPath("$.a.d").edit(DATA, lambda _: MISSING)["a"] == {"b c": DATA["a"]["b c"]}


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from([".a", ".b", "[0]", "[1]", "[*]", ".*"]), max_size=4)
DEEP_STEPS = st.lists(
    st.sampled_from([".a", ".b", "[0]", "[*]", "..a", "..b", "..[0]", "..*"]),
    min_size=1,
    max_size=4,
)


@given(VALUES, STEPS)
def test_what_is_put_at_a_path_that_leads_somewhere_is_found_there(value, steps):
    path = JsonPath("$" + "".join(steps))
    before = len(path.select(value))
    put = path.edit(value, lambda old: old if old is MISSING else "put")
    assert path.select(put) == ["put"] * before
    gone = path.edit(value, lambda _: MISSING)
    assert gone is MISSING or "." not in steps[-1:] or not path.select(gone)


def _places(value: Any, place: Place = ()) -> Any:
    yield place, value
    inner: Any = value.items() if isinstance(value, dict) else ()
    for step, each in enumerate(value) if isinstance(value, list) else inner:
        yield from _places(each, (*place, step))


@given(VALUES, DEEP_STEPS)
def test_selecting_editing_and_covering_mean_the_same_places(value, steps):
    path = JsonPath("$" + "".join(steps))
    expected = re.compile(
        "".join(
            (".*" if step.startswith("..") else "")
            + {"*": r"/\w", "a": "/a", "b": "/b", "0": "/0"}[step.strip(".[]")]
            for step in steps
        )
    )
    spots = [("".join(f"/{step}" for step in place), place, each) for place, each in _places(value)]
    wanted = [each for text, _, each in spots if expected.fullmatch(text)]
    assert path.select(value) == wanted
    changed: list[Any] = []
    path.edit(value, lambda old: changed.append(old) if old is not MISSING else MISSING)
    assert len(changed) == len(wanted)
    for text, place, _ in spots:
        above = [text[:end] for end in range(len(text) + 1) if text[end : end + 1] in ("", "/")]
        assert path.covers(place) is any(expected.fullmatch(each) for each in above if each)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((), "$"),
        (("result", "content", 0, "text"), "$.result.content[0].text"),
        (("tools", Item("echo"), "title"), '$.tools["echo"].title'),
        (("tools", Item("a b")), '$.tools["a b"]'),
        (("_meta", "io.example/x"), '$._meta["io.example/x"]'),
    ],
)
def test_a_place_is_written_as_a_path_that_leads_there(place, text):
    assert spelled(place) == text
    assert JsonPath(text).steps == place


@pytest.mark.parametrize(
    ("pattern", "place", "covered"),
    [
        ("$.result.text", ("result", "text"), True),
        ("$.result.text", ("result", "text", "deeper"), True),
        ("$.result.text", ("result",), False),
        ("$.result.text", ("result", "texts"), False),
        ("$.content[*].text", ("content", 7, "text"), True),
        ("$.*.text", ("anything", "text"), True),
        ("$.content[1]", ("content", 1), True),
        ("$.content[1]", ("content", 2), False),
        ('$.content["1"]', ("content", 1), False),
        ('$.tools["echo"]', ("tools", Item("echo"), "title"), True),
        ('$["a.b"]', ("a.b",), True),
        ("$..time", ("a", 0, "b", "time"), True),
        ("$..time", ("a", "b"), False),
        ("$.a..b.c", ("a", "b", "x", "b", "c"), True),
        ("$.a..b.c", ("x", "b", "c"), False),
        ("$..a..b", ("b", "a"), False),
    ],
)
def test_a_path_covers_what_it_names_and_all_below(pattern, place, covered):
    assert JsonPath(pattern).covers(place) is covered


def test_what_is_written_back_covers_the_place_it_came_from():
    place = ("result", "tools", Item("odd name"), "x y", 3, "_meta", "io.example/é", 'q"\\\n')
    assert JsonPath(spelled(place)).covers(place)


def test_a_path_that_nearly_fits_everywhere_is_still_quick():
    path = JsonPath("$" + "..a" * 300 + "..b")
    assert not path.covers(tuple(["a"] * 500))
    value: Any = {}
    for _ in range(60):
        value = {"a": value, "c": [value] if len(str(value)) < 10_000 else 0}
    seen = 0

    def count(old: Any) -> Any:
        nonlocal seen
        seen += 1
        return old

    assert path.select(value) == []
    every = JsonPath("$" + "..*" * 3)
    assert every.edit(value, count) == value
    assert seen == len(every.select(value)) <= sum(1 for _ in _places(value))
