"""Names made of their parts, and read back into them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.names import (
    InvalidName,
    Namespace,
    ResourceUri,
    ToolName,
    make_resource_template,
    make_resource_uri,
    make_tool_name,
    parse_resource_uri,
    parse_tool_name,
    validate_resource_uri,
)
from tests.names.support import refusal

NAMESPACES = st.from_regex(r"[a-z][a-z0-9]{2,19}", fullmatch=True)
WORDS = st.from_regex(r"[a-z][a-z0-9_]{1,30}", fullmatch=True)
SEGMENTS = st.from_regex(r"[a-z0-9_.-]{1,20}", fullmatch=True).filter(
    lambda segment: segment not in {".", ".."}
)
IDS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)
KEYS = st.from_regex(r"[A-Za-z0-9_.-]{1,10}", fullmatch=True)
QUERIES = st.dictionaries(KEYS, st.text(max_size=20), max_size=4)


@pytest.mark.requirement("names.make-tool-name")
def test_a_tool_name_is_the_namespace_a_colon_and_the_tool():
    assert make_tool_name("myproject", "create_task") == "myproject:create_task"
    assert Namespace("myproject").make_tool_name("create_task") == "myproject:create_task"


@pytest.mark.requirement("names.make-resource-uri")
def test_a_resource_uri_is_made_with_and_without_a_query():
    assert (
        make_resource_uri("myproject", "templates", "daily-report.md")
        == "myproject://templates/daily-report.md"
    )
    assert (
        Namespace("myproject").make_resource_uri("docs", "123", {"format": "json", "limit": "10"})
        == "myproject://docs/123?format=json&limit=10"
    )
    assert make_resource_uri("myproject", "docs", "123", {}) == "myproject://docs/123"
    assert make_resource_uri("myproject", "docs", "a/b/c") == "myproject://docs/a/b/c"


@pytest.mark.requirement("names.uri-query")
def test_the_values_of_a_query_are_encoded_when_made_and_decoded_when_read():
    made = make_resource_uri("myproject", "docs", "123", {"q": "a b&c=d+é%", "none": ""})
    assert made == "myproject://docs/123?q=a%20b%26c%3Dd%2B%C3%A9%25&none="
    assert parse_resource_uri(made).query == {"q": "a b&c=d+é%", "none": ""}
    read = parse_resource_uri("myproject://docs/1?at=12:30&low=%c3%a9")
    assert read.query == {"at": "12:30", "low": "é"}


@pytest.mark.requirement("names.make-parse-identity")
@given(NAMESPACES, WORDS)
def test_a_tool_name_reads_back_into_what_it_was_made_of(namespace, tool):
    made = make_tool_name(namespace, tool)
    assert parse_tool_name(made) == ToolName(namespace, tool)
    assert str(parse_tool_name(made, namespace)) == made


@pytest.mark.requirement("names.make-parse-identity")
@given(NAMESPACES, WORDS, IDS, QUERIES)
def test_a_uri_reads_back_into_what_it_was_made_of(namespace, kind, identifier, query):
    made = make_resource_uri(namespace, kind, identifier, query)
    assert made.isascii()
    validate_resource_uri(made, namespace)
    assert parse_resource_uri(made) == ResourceUri(namespace, kind, identifier, query)
    assert list(parse_resource_uri(made).query) == list(query)
    assert str(parse_resource_uri(made, namespace)) == made


@pytest.mark.requirement("names.make-parse-identity")
@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12), QUERIES)
def test_what_would_not_read_back_is_not_made(namespace, kind, identifier, query):
    try:
        made = make_resource_uri(namespace, kind, identifier, query)
    except InvalidName:
        return
    assert parse_resource_uri(made) == ResourceUri(namespace, kind, identifier, query)


@pytest.mark.parametrize(
    ("parts", "rule", "position"),
    [
        (("myproject", "docs/a", "b"), "type-characters", 16),
        (("myproject", "docs", "b?c=d"), "id-characters", 18),
        (("myproject", "docs", "b/../c"), "id-dots", 19),
        (("myproject", "docs", ""), "id-empty", 17),
        (("myproject", "docs", "b", {"c d": "e"}), "query-key", 20),
        (("myproject", "docs", "b", {"": "e"}), "query-pair", 19),
        (("myproject", "docs", "b", {"c&d": "e"}), "query-pair", 19),
        (("myproject", "docs", "b", {"c=d": "e"}), "query-value", 22),
        (("myproject", "docs", "b", {"c": "\ud800"}), "query-value", 21),
        (("myproject", "docs", "b", {"c": "x" * 2048}), "uri-length", 2048),
        (("my-project", "docs", "b"), "namespace-characters", 2),
    ],
)
def test_a_part_that_is_wrong_is_refused_where_it_is_wrong(parts, rule, position):
    found = refusal(make_resource_uri, *parts)
    assert (found.rule, found.position) == (rule, position)


def test_an_error_never_proposes_the_name_it_refuses():
    assert refusal(make_resource_uri, "myproject", "docs/a", "b").nearest is None


@pytest.mark.parametrize(
    "parts", [("myproject", "CreateTask"), ("myproject:a", "bc"), ("mp", "tool"), ("", "tool")]
)
def test_a_tool_name_of_a_wrong_half_is_refused(parts):
    with pytest.raises(InvalidName):
        make_tool_name(*parts)


def test_a_template_is_made_of_a_type_and_an_id_with_variables():
    assert (
        make_resource_template("myproject", "tasks", "{task_id}") == "myproject://tasks/{task_id}"
    )
    assert (
        Namespace("myproject").make_resource_template("tasks", "{task_id}{?format}")
        == "myproject://tasks/{task_id}{?format}"
    )
    for kind, identifier in (("{type}", "a"), ("tasks/a", "{b}"), ("tasks", "{"), ("tasks", "")):
        with pytest.raises(InvalidName, match="Invalid resource URI"):
            make_resource_template("myproject", kind, identifier)


def test_a_namespace_makes_reads_and_checks_its_own_names():
    ours = Namespace("myproject")
    assert ours.parse_tool_name(ours.make_tool_name("create_task")) == ToolName(
        "myproject", "create_task"
    )
    assert ours.parse_resource_uri(ours.make_resource_uri("docs", "a", {"b": "c d"})) == (
        ResourceUri("myproject", "docs", "a", {"b": "c d"})
    )
    ours.validate_tool_name("myproject:create_task")
    ours.validate_resource_uri("myproject://docs/a")
    ours.validate_resource_template("myproject://docs/{id}")


def test_a_namespace_refuses_the_names_of_others():
    ours = Namespace("myproject")
    for refuse, name in (
        (ours.validate_tool_name, "projecta:create_task"),
        (ours.parse_tool_name, "projecta:create_task"),
        (ours.validate_resource_uri, "projecta://docs/a"),
        (ours.parse_resource_uri, "projecta://docs/a"),
        (ours.validate_resource_template, "projecta://docs/{id}"),
    ):
        with pytest.raises(InvalidName, match=r"Wrong namespace.* Did you mean myproject:"):
            refuse(name)


def test_a_namespace_is_its_name():
    ours = Namespace("myproject")
    assert str(ours) == "myproject"
    assert repr(ours) == "Namespace('myproject')"
    assert {ours, Namespace("myproject")} == {ours}
    assert ours != Namespace("projecta")
    assert ours != "myproject"
    with pytest.raises(InvalidName, match="Invalid namespace"):
        Namespace("my-project")
