"""A tape in other forms."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from folkmoot.cli.tape.options import FORMS
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.proxy.tape import TapeSide, follow_lines
from folkmoot.proxy.tape.export import FORMATS
from tests.proxy.tape.studio import TO_SERVER, conversation, recording


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return conversation(tmp_path_factory.mktemp("tapes") / "a.jsonl")


def exported(path: Path, form: str) -> str:
    return "".join(FORMATS[form](follow_lines(path)))


def har(path: Path) -> list[dict[str, Any]]:
    return json.loads(exported(path, "har"))["log"]["entries"]


def test_the_forms_are_those_the_command_offers():
    assert tuple(FORMATS) == FORMS


def test_the_json_document_holds_everything(path):
    document = json.loads(exported(path, "json"))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]

    def typed(name: str) -> list[Any]:
        return [line for line in lines if line["type"] == name]

    assert document["header"] == lines[0]
    for message in document["messages"]:
        timing = message["timing"]
        message["timing"] = {name: at for name, at in timing.items() if at is not None}
    assert document["messages"] == typed("message")
    assert (document["correlations"], document["end"]) == (typed("correlation"), lines[-1])


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_tape_without_an_end_can_be_exported(tmp_path, form):
    with recording(tmp_path / "t.jsonl", end=False):
        pass
    text = exported(tmp_path / "t.jsonl", form)
    if form != "markdown":
        json.loads(text)


def test_an_archive_has_an_entry_for_each_call_and_notification(path):
    entries = har(path)
    assert len(entries) == 12
    echo = next(entry for entry in entries if entry["_mcp"]["name"] == "echo")
    assert echo["request"]["url"] == "stdio://npx/tools/call?name=echo"
    assert echo["time"] == pytest.approx(5)
    assert echo["startedDateTime"].endswith("Z")
    assert json.loads(echo["request"]["postData"]["text"])["id"] == 2
    said = json.loads(echo["response"]["content"]["text"])
    assert said["result"]["content"][0]["text"] == "Echo: hello"
    assert echo["_mcp"]["request"] == 6
    # Answers, errors, notices and silence are told apart.
    by_request = {entry["_mcp"]["request"]: entry for entry in entries}
    assert by_request[15]["_mcp"]["outcome"] == "error"
    assert by_request[3]["response"]["status"] == 202
    assert by_request[20]["response"]["status"] == 0
    assert by_request[10]["_mcp"]["direction"] == "server_to_client"


def test_an_archive_keeps_what_was_http(tmp_path):
    server = TapeSide("http", "http://a.example:81/x")
    with recording(tmp_path / "t.jsonl", server=server) as studio:
        headers = Headers.of([("MCP-Protocol-Version", "2025-11-25")])
        studio.transport = TransportContext(HttpMetadata(headers, "POST", "/mcp", 401))
        studio.call(1, "ping", error={"code": -1, "message": "no"})
    (entry,) = har(tmp_path / "t.jsonl")
    assert entry["request"]["url"] == "http://a.example:81/mcp"
    assert entry["request"]["headers"] == [{"name": "mcp-protocol-version", "value": "2025-11-25"}]
    assert entry["response"]["status"] == 401


REQUIRED = {
    "": {"startedDateTime", "time", "request", "response", "cache", "timings"},
    "request": {"method", "url", "httpVersion", "cookies", "headers", "queryString",
                "headersSize", "bodySize"},
    "response": {"status", "statusText", "httpVersion", "cookies", "headers", "content",
                 "redirectURL", "headersSize", "bodySize"},
    "timings": {"send", "wait", "receive"},
}  # fmt: skip


def test_every_entry_has_the_members_that_the_format_requires(path):
    log = json.loads(exported(path, "har"))["log"]
    assert (log["version"], log["creator"]) == ("1.2", {"name": "folkmoot", "version": "0.1.0"})
    for entry in log["entries"]:
        for part, names in REQUIRED.items():
            assert names <= (entry[part] if part else entry).keys()


def test_a_transcript_shows_each_message_as_a_block_of_json(path):
    text = exported(path, "markdown")
    tokens = MarkdownIt().parse(text)
    assert len([json.loads(token.content) for token in tokens if token.type == "fence"]) == 21
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert (headings[0], headings[4]) == ("A recorded conversation", "6. `tools/call` `echo`")
    for words in ("**Answer** 12 to 8, after 1500.0 ms", "**tool error**", "block by `deny`"):
        assert words in text


def test_nothing_in_a_message_breaks_out_of_its_block(tmp_path):
    evil = "```\n# Owned\n````` <script>"
    with recording(tmp_path / "t.jsonl") as studio:
        studio.tool(1, f"a`b|c\n{evil}", evil)
    markdown = MarkdownIt("commonmark").enable("table")
    kinds = [token.type for token in markdown.parse(exported(tmp_path / "t.jsonl", "markdown"))]
    assert [kinds.count(kind) for kind in ("heading_open", "fence", "html_block")] == [2, 2, 0]


def test_a_long_message_is_cut_in_a_transcript_and_the_cut_is_told(tmp_path):
    with recording(tmp_path / "t.jsonl") as studio:
        studio.say(TO_SERVER, {"method": "x", "params": {"a": "y" * 50_000}})
    text = exported(tmp_path / "t.jsonl", "markdown")
    assert len(text) < 10_000
    assert "more characters are not shown" in text
