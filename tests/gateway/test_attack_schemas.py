"""Schemas of backends that are made to cost much: a schema is a stranger's program."""

from __future__ import annotations

import asyncio
import threading

from folkmoot.jsonschemas import Schema
from tests.gateway.scripted import Scripted, told, tool


async def test_a_schema_is_compiled_in_a_thread_and_once(gate, monkeypatch):
    properties = {f"p{number}": {"pattern": f"^a{number}$"} for number in range(100)}
    threads: list[threading.Thread] = []
    prepare = Schema._compile

    def noted(schema: Schema) -> None:
        threads.append(threading.current_thread())
        prepare(schema)

    monkeypatch.setattr(Schema, "_compile", noted)
    await gate.has(Scripted("demo"), tools=(tool("it", properties=properties),))
    for answer in await asyncio.gather(*(gate.call("demo:it", {"p7": "b"}) for _ in range(5))):
        assert "does not match" in told(answer)["error"]
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
