"""What an error of names says: the rule, the place, and the nearest valid name."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.names import (
    RULES,
    InvalidName,
    check_free_namespace,
    namespace_from_slug,
    nearest_namespace,
    nearest_resource_uri,
    nearest_tool_name,
    parse_resource_uri,
    parse_tool_name,
    snake_case,
    validate_namespace,
    validate_resource_template,
    validate_resource_uri,
    validate_tool_name,
)

ANY = st.one_of(
    st.text(max_size=60),
    st.text(st.sampled_from("abcXYZ019_-.:/?=&%{} é語"), max_size=60),
    st.builds("{}:{}".format, st.text(max_size=8), st.text(max_size=20)),
    st.builds("{}://{}/{}?{}".format, *[st.text(max_size=10)] * 4),
)


def refusal(
    validate: Callable[[str, str | None], None], text: str, expected: str | None
) -> InvalidName | None:
    """The error of a text that is refused."""
    try:
        validate(text, expected)
    except InvalidName as refused:
        return refused
    return None


@pytest.mark.requirement("names.validate-tool-error")
def test_an_invalid_tool_name_is_told_with_pattern_rule_place_and_nearest_name():
    with pytest.raises(ValueError, match="Invalid tool name") as refused:
        validate_tool_name("myproject:createTask")
    assert str(refused.value) == (
        "Invalid tool name: myproject:createTask. Must match pattern: namespace:tool_name. "
        "A tool's name has lower-case letters, digits and underscores only "
        "(rule tool-characters; character 17 is 'T'). Did you mean myproject:create_task?"
    )
    assert isinstance(refused.value, e.FolkmootError)
    assert refused.value.as_jsonrpc()["data"] == {
        "code": "invalid_name",
        "name": "myproject:createTask",
        "rule": "tool-characters",
        "position": 16,
        "nearest": "myproject:create_task",
    }
    with pytest.raises(InvalidName, match=r"Must match pattern: myproject:tool_name\."):
        validate_tool_name("create_task", expected_namespace="myproject")


@pytest.mark.requirement("names.validate-uri-error")
def test_an_invalid_uri_is_told_with_pattern_rule_place_and_nearest_uri():
    with pytest.raises(ValueError, match="Invalid resource URI") as refused:
        validate_resource_uri("myproject/templates/daily-report.md", expected_namespace="myproject")
    assert str(refused.value) == (
        "Invalid resource URI: myproject/templates/daily-report.md. "
        "Must match pattern: namespace://type/id. "
        "A resource URI has :// after its namespace (rule uri-separator; character 10 is '/'). "
        "Did you mean myproject://templates/daily-report.md?"
    )
    with pytest.raises(InvalidName, match=r"\(rule id-empty; at the end\)\.$"):
        validate_resource_uri("myproject://docs")


@pytest.mark.requirement("names.validate-tool-namespace")
def test_a_tool_of_another_namespace_is_refused_with_both_named():
    validate_tool_name("myproject:create_task", expected_namespace="myproject")
    with pytest.raises(InvalidName, match="Wrong namespace") as refused:
        validate_tool_name("projecta:create_task", expected_namespace="myproject")
    assert str(refused.value) == (
        "Wrong namespace in tool name. Expected: myproject:*, got: projecta:create_task. "
        "Did you mean myproject:create_task?"
    )
    assert (refused.value.rule, refused.value.position) == ("foreign-namespace", 0)
    with pytest.raises(InvalidName, match="Wrong namespace"):
        parse_tool_name("myprojectx:create_task", "myproject")


@pytest.mark.requirement("names.validate-uri-namespace")
def test_a_uri_of_another_namespace_is_refused_with_both_named():
    validate_resource_uri("myproject://docs/a", expected_namespace="myproject")
    with pytest.raises(ValueError, match="Wrong namespace") as refused:
        validate_resource_uri("projecta://docs/a?b=c", expected_namespace="myproject")
    assert str(refused.value) == (
        "Wrong namespace in resource URI. Expected: myproject://*, got: projecta://docs/a?b=c. "
        "Did you mean myproject://docs/a?b=c?"
    )
    for check in (parse_resource_uri, validate_resource_template):
        with pytest.raises(InvalidName, match="Wrong namespace"):
            check("projecta://docs/a", "myproject")


def test_a_namespace_can_be_expected_and_must_itself_be_valid():
    validate_namespace("myproject", expected_namespace="myproject")
    with pytest.raises(InvalidName, match="Expected: myproject, got: projecta"):
        validate_namespace("projecta", expected_namespace="myproject")
    for expected in ("", "My", "my_project"):
        with pytest.raises(InvalidName, match="Invalid namespace"):
            validate_tool_name("myproject:create_task", expected)
        with pytest.raises(InvalidName, match="Invalid namespace"):
            validate_resource_uri("myproject://docs/a", expected)


@pytest.mark.parametrize(
    ("name", "expected", "nearest"),
    [
        ("MyProject:CreateTask", None, "myproject:create_task"),
        ("mp:tool", None, "mptools:tool"),
        ("create_task", None, None),
        ("create_task", "myproject", "myproject:create_task"),
        ("myproject/create_task", None, "myproject:create_task"),
        ("myproject.create_task", "myproject", "myproject:create_task"),
        ("tasks.create", "myproject", "myproject:tasks_create"),
        ("myproject:getHTTPResponse\n", None, "myproject:get_http_response"),
        ("myproject:x", None, "myproject:tool_x"),
        ("myproject:", None, None),
        ("語:語", None, None),
        ("myproject:" + "a" * 1000, None, None),
    ],
)
def test_the_nearest_tool_name_is_what_was_probably_meant(name, expected, nearest):
    assert nearest_tool_name(name, expected) == nearest


@pytest.mark.parametrize(
    ("uri", "expected", "nearest"),
    [
        ("MyProject://Templates/DailyReport.md", None, "myproject://templates/daily-report.md"),
        ("myproject/templates/a.md", None, "myproject://templates/a.md"),
        ("templates/a.md", None, None),
        ("templates/a.md", "myproject", "myproject://templates/a.md"),
        ("myproject://docs/a/../b", None, "myproject://docs/a/b"),
        ("myproject://docs//a/", None, "myproject://docs/a"),
        ("myproject://docs/My%20Notes", None, "myproject://docs/my-notes"),
        ("myproject://docs/a?q=b c&q=d&&é", None, "myproject://docs/a?q=b%20c"),
        ("myproject://docs/a?q=%FF", None, "myproject://docs/a?q=%25FF"),
        ("myproject://docs", None, None),
        ("語://docs/a", None, None),
        ("myproject://docs/-a-?b=c/d&e=", None, "myproject://docs/-a-?b=c/d&e="),
        (f"myproject://{'a' * 200}/b", None, f"myproject://{'a' * 200}/b"),
        ("Myproject://docs/a-?b=c/d&e=f g", None, "myproject://docs/a-?b=c/d&e=f%20g"),
        ("myproject://docs/" + "A" * 3000, None, None),
    ],
)
def test_the_nearest_uri_is_what_was_probably_meant(uri, expected, nearest):
    assert nearest_resource_uri(uri, expected) == nearest


@given(ANY, st.sampled_from([None, "myproject"]))
def test_a_nearest_name_is_valid_and_an_error_is_one_short_line(text, expected):
    for nearest, validate in (
        (nearest_tool_name, validate_tool_name),
        (nearest_resource_uri, validate_resource_uri),
    ):
        if (name := nearest(text, expected)) is not None:
            validate(name, expected)
        refused = refusal(validate, text, expected)
        if refused is None:
            assert name == text
        else:
            assert str(refused).isprintable()
            assert len(str(refused)) < 450
            assert refused.rule in RULES
            assert refused.nearest != text
            assert refused.position in range(len(text) + 1)
    if (name := nearest_namespace(text)) is not None:
        check_free_namespace(name)


@pytest.mark.parametrize(
    "begun", ["", "myproject:", "myproject://docs/", "@acme/", "A", "語", "\n"]
)
def test_a_megabyte_is_refused_at_once_and_hardly_shown(begun):
    text = begun + "x" * 1_000_000
    start = time.process_time()
    for refuse in (
        validate_namespace, validate_tool_name, validate_resource_uri, validate_resource_template,
        namespace_from_slug, check_free_namespace,
    ):  # fmt: skip
        with pytest.raises(InvalidName) as refused:
            refuse(text)
        assert len(str(refused.value)) < 400
        assert len(str(refused.value.data)) < 300
    assert len(snake_case(text)) <= 128
    assert time.process_time() - start < 2


def test_what_cannot_be_printed_is_shown_escaped():
    with pytest.raises(InvalidName, match=r"myproject:a\\u202eb\\x00\."):
        validate_tool_name("myproject:a\u202eb\0")
    with pytest.raises(InvalidName, match="Invalid namespace: ''"):
        validate_namespace("")
