"""Arguments of a tool as people type them."""

from __future__ import annotations

from io import StringIO

import pytest

from folkmoot.cli.options import (
    ArgumentMistake,
    read_arguments,
    signature,
    usage,
)

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
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
        ("text=3", "3"), ("text=", ""), ("text=a=b", "a=b"), ("maybe=null", None),
        ("maybe=none", "none"), ("either=3", 3), ("either=true", "true"), ("either={}", "{}"),
        ("either:=true", True), ("count=3", 3),
        ("share=0.5", 0.5), ("share=2", 2), ("share=null", None), ("deep=true", True),
        ('names=["a"]', ["a"]), ("other=3", 3), ("other=x y", "x y"), ("unknown=true", True),
        ("unknown=Rye", "Rye"), ("text:=3", 3), ('unknown:={"a": 1}', {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_is_read_by_what_the_schema_says(word, value):
    (read,) = read_arguments([word], SCHEMA).values()
    assert (read, type(read)) == (value, type(value))


def test_one_json_object_is_all_arguments():
    assert read_arguments(['{"count": 1, "text": "a"}']) == {"count": 1, "text": "a"}
    assert read_arguments([]) == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["Rye"], "Arguments are written name=value, not 'Rye'."),
        (["=Rye"], "Arguments are written name=value, not '=Rye'."),
        (["count=three"], "count must be an integer, not 'three'; count:=JSON sends it anyway."),
        (["count=1.5"], "count must be an integer, not '1.5'; count:=JSON sends it anyway."),
        (["count=true"], "count must be an integer, not 'true'; count:=JSON sends it anyway."),
        (["share=x"], "share must be a number or null, not 'x'; share:=JSON sends it anyway."),
        (["deep=1"], "deep must be true or false, not '1'; deep:=JSON sends it anyway."),
        (["a:=oops"], "a:= must be followed by JSON, not 'oops'."),
        (["a:=\x1b[2J"], r"a:= must be followed by JSON, not '\\x1b[2J'."),
        (["{\"a\": 1, \"a\": 2}"], "What is in the braces is not JSON."),
        (["text=a", "text=b"], "text is given twice."),
        (["{oops}"], "What is in the braces is not JSON."),
        (["{" * 100_000], "What is in the braces is not JSON."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_in_a_sentence(words, sentence):
    with pytest.raises(ArgumentMistake) as caught:
        read_arguments(words, SCHEMA)
    assert str(caught.value) == sentence


def test_a_tool_is_shown_as_it_is_called():
    assert usage({"name": "f", "inputSchema": SCHEMA}) == (
        "f text= [maybe=null] [either=integer] [count=integer] [share=null|number] [deep=boolean] "
        "[names=array] [other=]"
    )
    assert usage({"name": "f", "inputSchema": 3}) == "f"
    assert signature(None) == ""


def test_arguments_may_stand_in_a_file_or_on_standard_input(tmp_path, monkeypatch):
    kept = tmp_path / "a.json"
    kept.write_text('{"a": 1, "b": 2}')
    assert read_arguments(["b=3"], None, f"@{kept}") == {"a": 1, "b": 3}
    assert read_arguments(['{"b": 4}'], None, f"@{kept}") == {"a": 1, "b": 4}
    monkeypatch.setattr("sys.stdin", StringIO('{"a": 5}'))
    assert read_arguments([], None, "-") == {"a": 5}
    wrong = "--arguments must be a JSON object, @FILE or -."
    kept.write_bytes(b"\xff")
    for whole, sentence in (
        ('{"a": 1, "a": 2}', wrong), ("[]", wrong), (f"@{kept}", wrong),
        ("@/none", "--arguments: No such file or directory: /none."),
    ):  # fmt: skip
        with pytest.raises(ArgumentMistake) as caught:
            read_arguments([], None, whole)
        assert str(caught.value) == sentence
