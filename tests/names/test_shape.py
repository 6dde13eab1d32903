"""Any text as the name of a tool."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.names import snake_case, validate_tool_name

LOOKS_FINE = st.from_regex(r"[a-z][a-z0-9_]{1,127}", fullmatch=True)


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ("createIssue", "create_issue"),
        ("getHTTPResponse", "get_http_response"),
        ("HTTPServer", "http_server"),
        ("getHTTP2Response", "get_http2_response"),
        ("listPRs", "list_prs"),
        ("getURLsOfUser", "get_urls_of_user"),
        ("get-task", "get_task"),
        ("tasks.get", "tasks_get"),
        ("Get all  tasks!", "get_all_tasks"),
        ("__private__", "private"),
        ("SCREAMING_CASE", "screaming_case"),
        ("2fa-enable", "tool_2fa_enable"),
        ("x", "tool_x"),
        ("Café", "cafe"),
        ("İstanbul", "istanbul"),
        ("create_issue\n", "create_issue"),
    ],
)
def test_a_name_of_another_shape_becomes_snake_case(own, name):
    assert snake_case(own) == name


def test_a_name_that_cannot_be_written_gets_a_mark_that_stays_the_same():
    assert snake_case("") == "tool_e3b0c442"
    assert snake_case("---") == "tool_cb3f91d5"
    assert snake_case("搜索") == "tool_44ce7ae9"
    assert snake_case("搜索_files") == "files_e23a952f"
    assert snake_case("删除_files") != snake_case("搜索_files")


def test_a_name_that_is_too_long_is_cut_and_marked():
    long = "CreateIssue" * 40
    name = snake_case(long)
    assert len(name) == 128
    assert re.fullmatch(r"create_issue_create_[a-z_]+_[0-9a-f]{8}", name)
    assert snake_case(long + "s") != name
    far = "ab" + "-" * 2000
    assert len({snake_case(name) for name in ("ab", f"{far}x", f"{far}y")}) == 3


@given(LOOKS_FINE)
def test_a_valid_name_stays_as_it_is(name):
    assert snake_case(name) == name


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_every_text_becomes_a_valid_tool_name_once_and_for_all(own):
    name = snake_case(own)
    validate_tool_name(f"myproject:{name}")
    assert snake_case(name) == name
