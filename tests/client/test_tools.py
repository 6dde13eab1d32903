"""Functions as tools: their schema, what they take and what they return."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from folkmoot.client import Context, Message, ToolResult
from folkmoot.client.tools import Function, make_tool, result
from folkmoot.core import errors as e
from tests.harness import run


class Point(Struct):
    x: int
    y: int = 0


def place(
    name: str,
    at: Point,
    ctx: Context,
    size: Annotated[int, Meta(ge=1, description="How large.")] = 1,
    *,
    kind: Literal["round", "square"] = "round",
    tags: list[str] | None = None,
    anything: Any = None,
) -> dict[str, Any]:
    """Put something somewhere.

    It stays there.
    """
    return {"name": name, "x": at.x, "size": size, "kind": kind, "tags": tags, "by": ctx.caller}


async def nobody(request: Message, params: dict[str, Any]) -> None:
    raise AssertionError("nothing is told here")


def said(text: str) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": text}]}


REQUEST = Message(seq=1, id="r", sender="alice", kind="mcp.request.tools/call", payload={})


def call(function: Function, arguments: Any = None) -> dict[str, Any]:
    return run(make_tool(function).call(arguments, Context(REQUEST, nobody)))


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
POINT = {"x": NUMBER, "y": {**NUMBER, "default": 0}}
PLACED = {
    "name": TEXT,
    "at": {"$ref": "#/$defs/Point"},
    "size": {**NUMBER, "minimum": 1, "description": "How large.", "default": 1},
    "kind": {"enum": ["round", "square"], "default": "round"},
    "tags": {"anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}], "default": None},
    "anything": {"default": None},
}


def test_the_schema_is_made_from_the_signature_and_the_docstring():
    made = make_tool(place).listed
    assert made["description"] == "Put something somewhere.\n\nIt stays there."
    point = {"title": "Point", "type": "object", "properties": POINT, "required": ["x"]}
    assert (made["name"], made["inputSchema"]) == ("place", {
        "type": "object",
        "properties": PLACED,
        "required": ["name", "at"],
        "additionalProperties": False,
        "$defs": {"Point": point},
    })  # fmt: skip


def test_a_function_without_annotations_takes_anything():
    def loose(a, b=2):  # type: ignore[no-untyped-def]
        return [a, b]

    schema = make_tool(loose).schema
    assert (schema["properties"], schema["required"]) == ({"a": {}, "b": {"default": 2}}, ["a"])
    assert call(loose, {"a": {"deep": 1}}) == said('[{"deep":1},2]')


def test_arguments_become_what_the_signature_says():
    answer = call(place, {"name": "chair", "at": {"x": 3}})
    given = {"name": "chair", "x": 3, "size": 1, "kind": "round", "tags": None, "by": "alice"}
    assert answer["structuredContent"] == given
    assert msgspec.json.decode(answer["content"][0]["text"]) == given


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The argument name is missing."),
        ({"name": 1, "at": {"x": 1}}, "name: Expected `str`, got `int`."),
        ({"name": "a", "at": {"x": "1"}}, "at.x: Expected `int`, got `str`."),
        ({"name": "a", "at": {"x": 1}, "size": 0}, "size: Expected `int` >= 1."),
        (
            {"name": "a", "at": {"x": 1}, "ctx": 1},
            "place has no argument ctx; it takes name, at, size, kind, tags, anything.",
        ),
        ({"name": "a", "at": {"x": 1}, "kind": "flat"}, "kind: Invalid enum value 'flat'."),
        ([], "Expected `object`, got `array`."),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(arguments, sentence):
    with pytest.raises(e.ArgumentInvalid) as refused:
        call(place, arguments)
    assert str(refused.value) == sentence


def test_a_default_that_json_cannot_hold_is_left_out_of_the_schema():
    sentinel = object()

    def odd(a: Any = sentinel) -> bool:
        return a is sentinel

    assert make_tool(odd).schema["properties"] == {"a": {}}
    assert call(odd) == said("true")


IMAGE = {"type": "image", "data": "…"}


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (None, {"content": []}),
        ("words", said("words")),
        (7, said("7")),
        (Point(1), {**said('{"x":1,"y":0}'), "structuredContent": {"x": 1, "y": 0}}),
        (ToolResult((IMAGE,), {"a": 1}), {"content": [IMAGE], "structuredContent": {"a": 1}}),
        (ToolResult(({"type": "text", "text": "b"},)), said("b")),
    ],
)
def test_what_a_function_returns_is_written_as_mcp_writes_it(returned, told):
    assert result(returned) == told


async def test_a_function_that_is_not_async_does_not_hold_up_the_others():
    here = threading.get_ident()

    def where() -> bool:
        return threading.get_ident() == here

    async def there() -> bool:
        return threading.get_ident() == here

    contexts = Context(REQUEST, nobody)
    assert await make_tool(where).call({}, contexts) == said("false")
    assert await make_tool(there).call({}, contexts) == said("true")


def positional(a: int, /) -> None: ...
def rest(*a: int) -> None: ...
def named(**a: int) -> None: ...
def unspeakable(a: asyncio.Event) -> None: ...


@pytest.mark.parametrize("function", [positional, rest, named, unspeakable])
def test_a_function_that_cannot_be_called_with_json_is_refused_at_once(function):
    with pytest.raises(TypeError, match=f"The tool {function.__name__} takes"):
        make_tool(function)


def test_an_annotation_that_the_module_does_not_know_is_refused_at_once():
    class Local(Struct):
        a: int

    def lost(b: Local) -> None: ...

    with pytest.raises(TypeError, match="annotation that its module does not know"):
        make_tool(lost)


@pytest.mark.parametrize("name", ["", "a\n", "x" * 129])
def test_a_name_that_no_kind_can_hold_is_refused_at_once(name):
    with pytest.raises(ValueError, match="name of a tool"):
        make_tool(place, name)


async def test_progress_is_told_only_to_those_who_asked_for_it():
    told: list[dict[str, Any]] = []

    async def tell(request: Message, params: dict[str, Any]) -> None:
        told.append(params)

    await Context(REQUEST, tell).progress(1)
    payload = {"params": {"_meta": {"progressToken": 0}}}
    asked = Message(seq=1, id="r", sender="alice", kind="", payload=payload)
    await Context(asked, tell).progress(0.5, total=1, message="half")
    await Context(asked, tell).progress(1)
    assert told == [
        {"progressToken": 0, "progress": 0.5, "total": 1, "message": "half"},
        {"progressToken": 0, "progress": 1},
    ]
