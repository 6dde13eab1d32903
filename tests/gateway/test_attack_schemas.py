"""Schemas that are made to cost much: a schema is a stranger's program."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from folkmoot.jsonschemas import Schema
from tests.gateway.scripted import Scripted, behind
from tests.harness import run

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
OBJECTS = [{"a": number} for number in range(2_000)]


@pytest.mark.parametrize("name", ["$dynamicRef", "$recursiveRef"])
def test_a_reference_that_depends_on_where_it_is_met_is_not_followed(name: str) -> None:
    of = {"$dynamicRef": ("#it", "$dynamicAnchor", "it"), "$recursiveRef": ("#", "x", "y")}
    to, *anchor = of[name]
    schema = Schema({"$defs": {"it": {anchor[0]: anchor[1], "type": "string"}}, name: to})
    assert schema.faults({"a": 1}) == []
    assert not schema.unusable


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT_4, "type": ["object", *OBJECTS]},
        {"$schema": DRAFT_4, "properties": {"a": {"enum": OBJECTS}}},
        {"$schema": DRAFT_4, "dependencies": {"a": OBJECTS}},
        {"type": ["object", *OBJECTS]},
    ],
)
def test_a_schema_of_many_things_that_must_differ_is_read_soon(schema: dict[str, Any]) -> None:
    began = time.process_time()
    Schema(schema).faults({"a": 1})
    assert time.process_time() - began < 3


@pytest.mark.parametrize("schema", [{"type": 5}, {"properties": {"a": {"required": "a"}}}])
def test_a_schema_that_is_none_refuses_nothing(schema: dict[str, Any]) -> None:
    checked = Schema(schema)
    assert checked.faults({"a": 1}) == []
    assert checked.unusable


def test_reading_a_long_schema_holds_nobody_up(tmp_path: Path) -> None:
    properties = {f"p{number}": {"pattern": f"^a{number}$"} for number in range(300)}

    async def main() -> None:
        async with behind(tmp_path) as there:
            there.gateway.checks.prepare()
            listed = {"name": "it", "inputSchema": {"type": "object", "properties": properties}}
            await there.has(Scripted("demo"), tools=(listed,))
            calling = asyncio.ensure_future(there.call("demo:it", {"p7": "b"}))
            turns = 0
            while not calling.done():
                await asyncio.sleep(0)
                turns += 1
            assert (await calling)["isError"] is True
            # In the loop it would take a handful, and everyone else would have waited.
            assert turns > 20

    run(main())
