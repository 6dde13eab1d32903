"""Places in JSON values, and patterns of them."""

from __future__ import annotations

import pytest

from folkmoot.core.errors import PathSyntax
from folkmoot.proxy.tape.places import Item, Pattern, Place, spelled


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((), "$"),
        (("result", "content", 0, "text"), "$.result.content[0].text"),
        (("tools", Item("echo"), "title"), "$.tools[echo].title"),
        (("tools", Item("a b")), '$.tools["a b"]'),
        (("_meta", "io.example/x"), '$._meta["io.example/x"]'),
    ],
)
def test_a_place_is_written_as_people_write_it(place: Place, text: str) -> None:
    assert spelled(place) == text


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
        ("$.tools[echo]", ("tools", Item("echo"), "title"), True),
        ('$["a.b"]', ("a.b",), True),
        ("$..time", ("a", 0, "b", "time"), True),
        ("$..time", ("a", "b"), False),
        ("$.a..b.c", ("a", "b", "x", "b", "c"), True),
        ("$.a..b.c", ("x", "b", "c"), False),
        ("$..a..b", ("b", "a"), False),
    ],
)
def test_a_pattern_covers_what_it_names_and_all_below(
    pattern: str, place: Place, covered: bool
) -> None:
    assert Pattern(pattern).covers(place) is covered


def test_what_is_written_back_covers_the_place_it_came_from() -> None:
    place = ("result", "tools", Item("odd name"), "x y", 3, "_meta", "io.example/é")
    assert Pattern(spelled(place)).covers(place)


@pytest.mark.parametrize(
    "text", ["", "$", "result", "$result", "$.a[", "$.a[b c]", "$.a.", "$...a", "$" + ".a" * 600]
)
def test_what_is_no_path_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(PathSyntax, match="is not a path in a message"):
        Pattern(text)


def test_a_pattern_that_nearly_fits_everywhere_is_still_quick() -> None:
    place = tuple(["a"] * 500)
    assert not Pattern("$" + "..a" * 300 + "..b").covers(place)
