"""What programs are told, and what a live server is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema

from folkmoot.names.lint.model import Project
from folkmoot.names.lint.project import Config
from folkmoot.names.lint.rules import RULES
from folkmoot.names.lint.runner import as_data, as_sarif, judge
from folkmoot.names.lint.sources import read_lists
from tests.names.lint.projects import SERVER, lint, rules, write

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
NUMBER = {"type": "integer", "minimum": 1}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string"}, "uriBaseId": {"const": "ROOT"}},
                    "additionalProperties": False,
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "properties": dict.fromkeys(
                        ("startLine", "startColumn", "endLine", "endColumn"), NUMBER
                    ),
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"pattern": "^[A-Z][A-Za-z]+$"},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": LEVEL},
                                                    "additionalProperties": False,
                                                },
                                            },
                                            "additionalProperties": False,
                                        },
                                    },
                                },
                                "additionalProperties": False,
                            }
                        },
                    },
                    "columnKind": {"const": "unicodeCodePoints"},
                    "originalUriBaseIds": {"type": "object"},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "ruleIndex", "level"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer"},
                                "level": LEVEL,
                                "message": TEXT,
                                "locations": {"type": "array", "items": LOCATION, "maxItems": 1},
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                            "additionalProperties": False,
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "properties": {
                                            "level": LEVEL,
                                            "message": TEXT,
                                            "locations": {"type": "array", "items": LOCATION},
                                        },
                                        "additionalProperties": False,
                                    },
                                },
                            },
                            "additionalProperties": False,
                        },
                    },
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
"""The part of SARIF 2.1.0 that is used, without anything beside it."""

TOOL = "@mcp.tool(name='{0}')\ndef {0}(): ...\n"
NAME = "ein ordner/größe.py"


def sarif(root: Path, text: str) -> dict[str, Any]:
    """The log of one source's findings."""
    write(root, {NAME: SERVER + text})
    linting = lint(root)
    log = as_sarif(linting.project, linting.findings)
    jsonschema.validate(log, SARIF)
    run: dict[str, Any] = log["runs"][0]
    return run


def test_sarif_has_every_rule_and_each_finding_at_its_place(tmp_path: Path) -> None:
    run = sarif(tmp_path, TOOL.format("buy") + "mcp.mount(other)\n")
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    [result, _] = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "missing-namespace"
    [location] = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": "ein%20ordner/gr%C3%B6%C3%9Fe.py",
        "uriBaseId": "ROOT",
    }
    assert location["physicalLocation"]["region"] == {
        "startLine": 5, "startColumn": 16, "endLine": 5, "endColumn": 21,
    }  # fmt: skip
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert "mounted" in note["message"]["text"]


def test_a_finding_keeps_its_fingerprint_when_lines_move(tmp_path: Path) -> None:
    def prints(run: dict[str, Any]) -> list[str]:
        return [each["partialFingerprints"]["folkmootNames/v1"] for each in run["results"]]

    text = TOOL.format("buy") + TOOL.format("buy") + TOOL.format("buy")
    before = prints(sarif(tmp_path, text))
    after = prints(sarif(tmp_path, "\n\nX = 1\n" + text))
    assert sorted(before) == sorted(after)
    assert len(set(before)) == len(before) > 3


def test_json_has_names_findings_and_notes(tmp_path: Path) -> None:
    write(tmp_path, {"server.py": SERVER + TOOL.format("buy") + "mcp.mount(other)\n"})
    linting = lint(tmp_path, namespace="shop", ignore=("register-missing",))
    told = as_data(linting.project, linting.findings)
    place = {"path": "server.py", "line": 5, "column": 16, "end_line": 5, "end_column": 21}
    assert told["names"] == [{"kind": "tool", "name": "buy", "deprecated": False, **place}]
    assert told["findings"] == [
        {
            "rule": "missing-namespace",
            "severity": "error",
            "message": "Tool 'buy' has no namespace. Did you mean 'shop:buy'?",
            "name": "buy",
            "fixable": True,
            **place,
        }
    ]
    assert [note["line"] for note in told["notes"]] == [7]
    assert told["project"]["namespace"] == "shop"


def listed(namespace: str | None = None, **lists: list[dict[str, Any]]) -> Project:
    """What a server lists, as a project."""
    info = {"name": "shop", "version": "1.4.0"}
    return read_lists(
        {
            "tool": lists.get("tools", []),
            "resource": lists.get("resources", []),
            "template": lists.get("templates", []),
            "prompt": lists.get("prompts", []),
        },
        info,
        namespace=namespace,
    )


def test_what_a_live_server_lists_is_judged_by_the_same_rules() -> None:
    project = listed(
        tools=[
            {"name": "shop:buy", "description": "Buy it."},
            {"name": "shop:buy_v2"},
            {"name": "shop:get"},
            {"name": "createOrder"},
            {"name": "createOrder"},
            {"name": "shop:old", "description": "Deprecated: use buy."},
        ],
        resources=[{"uri": "shop://template/a"}, {"uri": "/a"}, {"uri": "ui://shop/page"}],
        templates=[{"uriTemplate": "shop://orders/{id}"}],
        prompts=[{"name": "shop:plan_day"}],
    )
    found = judge(project, Config())
    assert sorted(rules(found)) == [
        ("collision", "createOrder"),
        ("generic-name", "shop:get"),
        ("missing-namespace", "createOrder"),
        ("missing-namespace", "createOrder"),
        ("plain-resource", "/a"),
        ("singular-type", "shop://template/a"),
        ("tool-characters", "createOrder"),
        ("tool-characters", "createOrder"),
        ("undeprecated", "shop:buy"),
    ]
    assert [each.severity for each in found if each.rule == "undeprecated"] == ["warning"]
    jsonschema.validate(as_sarif(project, found), SARIF)


def test_a_spelling_for_model_apis_counts_as_the_name_it_stands_for() -> None:
    spelled = {"name": "shop_buy", "_meta": {"folkmoot/name": "shop:buy"}}
    assert judge(listed(tools=[spelled]), Config()) == []
    plain = {"name": "shop_buy"}
    assert judge(listed("shop", tools=[plain]), Config()) == []
    assert rules(judge(listed(tools=[plain]), Config())) == [("missing-namespace", "shop_buy")]


def test_a_server_that_lists_nonsense_is_judged_all_the_same() -> None:
    nonsense = [{"name": "\x1b[2J" + "x" * 5000, "description": 7, "_meta": 3}, {"name": ":"}, {}]
    found = judge(listed(tools=nonsense, prompts=nonsense), Config())
    assert found
    assert all(len(each.message) < 400 and "\x1b" not in each.message for each in found)


def test_many_names_are_judged_in_a_moment() -> None:
    project = listed(tools=[{"name": "shop:same"}] * 5_000)
    assert len(judge(project, Config(select=("collision",)))) == 4_999
