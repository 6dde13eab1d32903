"""The error tree."""

from __future__ import annotations

import inspect
from http import HTTPStatus
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS

CLASSES = [c for _, c in inspect.getmembers(e, inspect.isclass) if issubclass(c, Exception)]
# Those that are raised: what has none below it, and what has a code all the same.
LEAVES = [c for c in CLASSES if not c.__subclasses__() or c in e.ERRORS.values()]


def test_every_error_belongs_to_one_tree():
    assert all(issubclass(c, e.FolkmootError) for c in CLASSES)


@pytest.mark.requirement("error.code")
def test_every_leaf_has_a_code_of_its_own_and_stands_in_the_table():
    codes = [leaf.code for leaf in LEAVES]
    assert len(set(codes)) == len(codes)
    assert {leaf.code: leaf for leaf in LEAVES} == e.ERRORS


def test_a_leaf_is_named_as_its_code_and_one_of_another_module_is_told_as_its_base():
    class Elsewhere(e.DuplicateKey, http=422):
        pass

    assert (e.DuplicateKey.code, e.ReservedKind.code) == ("duplicate_key", "kind_reserved")
    assert (Elsewhere.code, Elsewhere.http, e.DuplicateKey.http) == ("duplicate_key", 422, 400)
    assert e.ERRORS["duplicate_key"] is e.DuplicateKey


@pytest.mark.requirement("error.forms")
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.code)
def test_every_leaf_knows_its_forms(leaf):
    assert -32768 <= leaf.jsonrpc <= -32000
    assert 400 <= HTTPStatus(leaf.http) < 600
    assert leaf.close in CLOSE_REASONS
    assert leaf.__doc__


def test_the_forms_carry_code_sentence_and_data():
    error = e.DuplicateKey("Twice.", member="a")
    assert str(error) == "Twice."
    told = {"code": "duplicate_key", "member": "a"}
    assert error.as_jsonrpc() == {"code": -32700, "message": "Twice.", "data": told}
    assert error.as_http() == {"error": {**told, "message": "Twice."}}


@pytest.mark.requirement("error.documented")
def test_the_reference_page_lists_every_code_and_no_other():
    page = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text()
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {row for row in rows if not row.isdigit()} == set(e.ERRORS)


def test_a_tools_error_says_its_own_sentence_unless_told_another():
    assert str(e.AuthenticationRequired()) == "Authentication required."
    assert str(e.AuthenticationRequired("Who are you?")) == "Who are you?"
    assert e.ArgumentInvalid("limit: too large.", field="limit").data == {"field": "limit"}


def test_what_is_wrong_with_an_apps_code_is_not_told():
    body = e.GrantInvalid().body()
    assert body["error"] == "invalid_grant"
    assert body["error_description"].endswith("Sign in again.")


def test_a_failed_request_has_the_answers_error_and_the_hubs_reason_if_it_was_the_hubs():
    error = {"code": -32600, "message": "Gone.", "data": {"code": "target_left"}}
    failed = e.RequestFailed("Gone.", error=error)
    assert (failed.error, failed.reason) == (error, "target_left")
    for other in ({"code": 1, "message": "No.", "data": 2}, {"code": 1, "data": {"code": 3}}, {}):
        assert e.RequestFailed("No.", error=other).reason is None


def test_an_invalid_name_says_which_rule_where_and_what_is_nearest():
    error = e.InvalidName("No.", name="My:x", rule="tool-case", position=0, nearest="my:x")
    assert isinstance(error, ValueError)
    told = {"name": "My:x", "rule": "tool-case", "position": 0, "nearest": "my:x"}
    assert error.data == told == {name: getattr(error, name) for name in told}
    assert e.InvalidName("No.", name="x", rule="tool").data == {"name": "x", "rule": "tool"}


def test_a_task_of_somebody_else_is_told_like_one_that_never_was():
    assert str(e.TaskUnknown()) == "Task not found."
