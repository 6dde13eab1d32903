"""Secrets in arguments and results."""

from __future__ import annotations

import json
from typing import Any

from folkmoot.core.message import ErrorObject, Response
from tests.proxy.rules.support import TO_CLIENT, Way, answer, call, used


def arguments(options: str, given: Any) -> Any:
    return Way(used("redact", options)).judge(call("x", given)).envelope.message.params["arguments"]


def result(options: str, given: Any) -> Any:
    return Way(used("redact", options)).judge(answer(given), TO_CLIENT).envelope.message.result


def test_values_at_paths_are_replaced_and_none_is_made():
    options = 'paths = ["$.params.arguments.card", "$.params.arguments.people[*].age"]'
    given = {"card": 4242, "people": [{"age": 7, "n": 1}, {"n": 2}], "other": True}
    assert arguments(options, given) == {
        "card": "[redacted]",
        "people": [{"age": "[redacted]", "n": 1}, {"n": 2}],
        "other": True,
    }
    assert arguments(options, {"other": 1}) == {"other": 1}


def test_members_by_name_are_replaced_at_any_depth_and_inside_json_in_a_text():
    inner = json.dumps({"a": [{"Password": "hunter2", "user": "ann"}]})
    given = {"db_password": {"x": 1}, "content": [{"type": "text", "text": inner}]}
    cleaned = result('names = ["*password"], replacement = "***"', given)
    assert cleaned["db_password"] == "***"
    assert json.loads(cleaned["content"][0]["text"]) == {"a": [{"Password": "***", "user": "ann"}]}


def test_words_that_fit_a_pattern_are_replaced_within_a_text():
    options = 'patterns = ["sk-*", "ghp_*"]'
    assert result(options, {"text": 'key=sk-123456, token "ghp_abc" and task-9'}) == {
        "text": 'key=[redacted], token "[redacted]" and task-9'
    }


def test_errors_are_cleaned_and_what_a_call_names_stays():
    way = Way(used("redact", 'patterns = ["sk-*"], names = ["name"]'))
    failed = Response(id=1, error=ErrorObject(-1, "bad key sk-1", {"k": ["sk-2"]}))
    error = way.judge(failed, TO_CLIENT).envelope.message.error
    assert (error.message, error.data) == ("bad key [redacted]", {"k": ["[redacted]"]})
    assert way.judge(call("sk-tool", {"name": "ann", "x": "sk-3"})).envelope.message.params == {
        "name": "sk-tool",
        "arguments": {"name": "[redacted]", "x": "[redacted]"},
    }


def test_a_message_without_secrets_keeps_its_bytes():
    clean = call("x", {"text": '{"a": 1}', "list": [1, {"b": "c"}]})
    options = 'patterns = ["sk-*"], names = ["password"], paths = ["$.result.x"]'
    assert Way(used("redact", options)).judge(clean).envelope.message.raw == clean.raw
