"""Schemas of servers that are not trusted: what is judged, what is said, and what it may cost."""

from __future__ import annotations

import socket
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.jsonschemas import MOST_KEPT, MOST_TEXT, Schema, Schemas

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "boolean", "null", "integer", "number", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    sizes, numbers = st.integers(0, 3), st.integers(-3, 3) | st.floats(-3, 3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "enum": st.lists(st.sampled_from(["", "a", "b"]), min_size=1, unique=True),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "minimum": numbers,
            "maximum": numbers,
            "exclusiveMinimum": numbers,
            "exclusiveMaximum": numbers,
            "minLength": sizes,
            "maxLength": sizes,
            "minItems": sizes,
            "maxItems": sizes,
            "description": st.just("Words."),
        },
    )


SCHEMAS = st.recursive(schemas(st.just(True)), schemas, max_leaves=5)


@given(SCHEMAS, VALUES)
def test_a_value_is_judged_as_the_reference_implementation_judges_it(schema, value):
    wanted = jsonschema.Draft202012Validator(schema).is_valid(value)
    judged = Schema(schema)
    assert judged.fits(value) is wanted
    assert not judged.unusable
    assert bool(judged.faults(value)) is not wanted


def test_what_does_not_fit_is_said_with_its_place():
    schema = Schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]})
    assert sorted(schema.faults({"a": "x"})) == [
        '"b" is a required property',
        'a: "x" is not of type "integer"',
    ]
    assert schema.faults({"a": 1, "b": 2}) == []
    assert len(Schema({"items": {"type": "string"}}).faults(list(range(50)))) == 5
    assert Schema({"items": {"type": "string"}}).faults([1] * 20_000) == [
        "the value does not match; it is too large to say where"
    ]
    (fault,) = Schema({"const": 1}).faults("\x1b[2J" + "x" * 900)
    assert fault.isprintable()
    assert len(fault) < 250


def test_a_pattern_that_takes_exponential_time_elsewhere_is_judged():
    schema = Schema({"properties": {"x": {"pattern": "^(a+)+$"}}})
    assert schema.fits({"x": "a" * 2_000})
    assert schema.faults({"x": "a" * 60 + "!"})[0].startswith("x: ")


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "(a{1000}){1000}", "[ab]{9999}"])
def test_a_pattern_that_is_not_linear_is_left_out_and_the_rest_is_judged(pattern):
    schema = Schema({"properties": {"x": {"type": "string", "pattern": pattern}}})
    assert schema.fits({"x": "anything"})
    assert schema.faults({"x": 5}) == ['x: 5 is not of type "string"']
    named = Schema({"patternProperties": {pattern: False}, "additionalProperties": False})
    assert named.fits({"x": 5})


def test_patterns_are_left_out_for_a_value_with_much_text_and_the_rest_is_judged():
    schema = Schema({"properties": {"x": {"type": "string", "pattern": "^[ab]*$"}}})
    assert not schema.fits({"x": "c"})
    assert schema.fits({"x": "c" * (MOST_TEXT + 1)})
    assert schema.faults({"x": 5, "y": "c" * (MOST_TEXT + 1)}) == ['x: 5 is not of type "string"']


def exploding(levels: int, **more: Any) -> dict[str, Any]:
    """A schema that takes twice as long with each level."""
    defs: dict[str, Any] = {
        f"l{n}": {
            "allOf": [
                {"$ref": f"#/$defs/l{n + 1}"},
                {"$ref": f"#/$defs/l{n + 1}", "minProperties": n - n},
            ]
        }
        for n in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**defs, f"l{levels}": {"type": "object"}}, **more}


def nested(name: str, levels: int, inner: Any) -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner


def unevaluated(levels: int) -> Any:
    inner: Any = {"properties": {"a": {}}}
    for _ in range(levels):
        inner = {"allOf": [inner], "unevaluatedProperties": {}}
    return inner


TWICE_DEEPER = {
    "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    "$defs": {
        "a": {"properties": {"x": {"$ref": "#"}}},
        "b": {"maxProperties": 1, "properties": {"x": {"$ref": "#"}}},
    },
}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
REPEATED = [{"pattern": f"((a{{100}}){{100}}){{{n}}}"} for n in range(900)]
PREFIXES = {f"^a{n}": {} for n in range(900)}
COSTLY = [
    ("references that double", exploding(40), {}),
    ("in another dialect", exploding(40, **DRAFT_7), {}),
    ("below a name of its own", {"allOf": [{"$id": "urn:x", **exploding(40)}]}, {}),
    ("twice with each level of the value", TWICE_DEEPER, nested("x", 200, {})),
    ("itself", {"$ref": "#"}, {}),
    ("itself twice", {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}),
    ("unevaluated in one another", unevaluated(30), {f"p{n}": 1 for n in range(100)}),
    ("nested deep", nested("not", 5_000, {}), {}),
    ("a deep value", {"properties": {"x": {"$ref": "#"}}}, nested("x", 900, 1)),
    ("repeats", {"pattern": "^" + "a?" * 40 + "a" * 40 + "$"}, "a" * 40),
    ("a long text", {"pattern": "[ab]*a[ab]{100}c"}, "ab" * 2_000_000),
    ("many patterns", {"patternProperties": PREFIXES}, {f"b{n}": 1 for n in range(5_000)}),
    ("compiled patterns", {"anyOf": REPEATED}, "a"),
    ("values that must differ", {"uniqueItems": True}, [{"n": n} for n in range(20_000)]),
    ("a long enum", {"items": {"enum": [{"a": n} for n in range(4_000)]}}, [{"a": 1}] * 9_000),
    ("many errors", {"anyOf": [{"items": {"type": "string"}}]}, list(range(40_000))),
    ("errors in alternatives", {"allOf": [{"const": n} for n in range(3_000)]}, 5),
    ("a number", {"properties": {"n": {"multipleOf": 1e-300}}}, {"n": 1e308}),
    ("many types", {"type": ["object", *({"a": n} for n in range(2_000))]}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "value"), [each[1:] for each in COSTLY], ids=[e[0] for e in COSTLY]
)
def test_no_schema_and_value_together_take_long(schema, value):
    judged = Schema(schema)
    began = time.thread_time()
    judged.faults(value)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "schema",
    [{"type": 5}, {"properties": {"a": {"required": "a"}}}, {"$ref": "#/nowhere"}, exploding(40)],
    ids=["no type", "no list", "nowhere", "too complex"],
)
def test_a_schema_that_cannot_be_used_refuses_nothing(schema, caplog):
    judged = Schema(schema)
    assert judged.faults({"a": 1}) == []
    assert judged.unusable
    assert judged.faults([]) == []
    assert [record.getMessage() for record in caplog.records] == [
        "the schema of a tool cannot be used, so arguments are not checked against it"
    ]


@pytest.mark.parametrize("name", ["$ref", "$schema", "$dynamicRef", "$recursiveRef", "$id"])
def test_nothing_is_fetched_for_a_schema(name):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        judged = Schema({name: f"http://127.0.0.1:{port}/schema", "type": "object"})
        judged.faults({})
        with pytest.raises(BlockingIOError):
            server.accept()
    assert judged.unusable is (name == "$ref")


def test_a_file_is_not_read_for_a_schema():
    assert Schema({"$ref": "file:///etc/hostname"}).faults(5) == []


def test_dialects_are_heeded_and_an_unknown_one_is_the_newest():
    old = {"$schema": "http://json-schema.org/draft-04/schema#"}
    strictly = {**old, "properties": {"n": {"maximum": 3, "exclusiveMaximum": True}}}
    assert Schema(strictly).faults({"n": 3})
    assert Schema(strictly).fits({"n": 2})
    assert Schema({"$schema": "urn:unknown", "dependentRequired": {"a": ["b"]}}).faults({"a": 1})


def test_a_value_that_breaks_the_library_does_not_switch_the_check_off():
    schema = Schema({"properties": {"n": {"multipleOf": 1e-300}, "s": {"type": "string"}}})
    schema.faults({"n": 1e308})
    assert schema.fits({"s": "\ud800"})
    assert schema.faults({"s": 1})


def test_a_schema_that_refers_to_itself_is_judged_at_every_depth():
    tree = {"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert Schema(tree).fits(nested("next", 50, {"n": 1}))
    assert Schema(tree).faults(nested("next", 3, {"n": "x"})) == [
        'next.next.next.n: "x" is not of type "integer"'
    ]


def test_one_schema_in_many_sessions_is_kept_once_and_schemas_are_bounded():
    schemas = Schemas()
    assert schemas.of({"type": "object"}) is schemas.of({"type": "object"})
    assert schemas.of(None) is None
    assert schemas.of({"description": "x" * 300_000}) is None
    for number in range(MOST_KEPT + 10):
        schemas.of({"const": number})
    assert len(schemas._kept) == MOST_KEPT
