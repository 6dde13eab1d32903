"""Arguments of a tool as people type them."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.cli.arguments import ArgumentMistake, read_arguments, signature

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "count": {"type": "integer"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "deep": {"type": "boolean"},
        "names": {"type": "array"},
        "other": {"$ref": "#/$defs/x"},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=3", "3"), ("text=", ""), ("text=a=b", "a=b"), ("maybe=null", "null"), ("count=3", 3),
        ("share=0.5", 0.5), ("share=2", 2), ("share=null", None), ("deep=true", True),
        ('names=["a"]', ["a"]), ("other=3", 3), ("other=x y", "x y"), ("unknown=true", True),
        ("unknown=Rye", "Rye"), ("text:=3", 3), ('unknown:={"a": 1}', {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_is_read_by_what_the_schema_says(word: str, value: Any) -> None:
    (read,) = read_arguments([word], SCHEMA).values()
    assert (read, type(read)) == (value, type(value))


def test_one_json_object_is_all_arguments() -> None:
    assert read_arguments(['{"count": 1, "text": "a"}']) == {"count": 1, "text": "a"}
    assert read_arguments([]) == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["Rye"], "Arguments are written name=value, not 'Rye'."),
        (["=Rye"], "Arguments are written name=value, not '=Rye'."),
        (["count=three"], "count must be an integer, not 'three'."),
        (["count=1.5"], "count must be an integer, not '1.5'."),
        (["count=true"], "count must be an integer, not 'true'."),
        (["share=x"], "share must be a number or null, not 'x'."),
        (["deep=1"], "deep must be true or false, not '1'."),
        (["a:=oops"], "a must be JSON, not 'oops'."),
        (["text=a", "text=b"], "text is given twice."),
        (["{oops}"], "What is in the braces is not JSON."),
        (["{" * 100_000], "What is in the braces is not JSON."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_in_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(ArgumentMistake) as caught:
        read_arguments(words, SCHEMA)
    assert str(caught.value) == sentence


def test_a_tool_is_shown_as_it_is_called() -> None:
    assert signature({"name": "f", "inputSchema": SCHEMA}) == (
        "f text [maybe] [count] [share] [deep] [names] [other]"
    )
    assert signature({"name": "f", "inputSchema": 3}) == "f"
