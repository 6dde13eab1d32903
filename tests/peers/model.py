"""Stands in for the models of Codex and Claude Code: calls one tool, and repeats its answer."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TOOL = "mcp__hub__msg_whoami"
SERVER, _, NAME = TOOL.rpartition("__")


def streamed(*events: dict[str, Any]) -> Response:
    lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return Response("".join(lines), media_type="text/event-stream")


async def responses(request: Request) -> Response:
    """Codex asks here."""
    asked = await request.json()
    results = [each["output"] for each in asked["input"] if each["type"] == "function_call_output"]
    if results:
        said = [{"type": "output_text", "text": json.dumps(results[-1])}]
        item = {"type": "message", "role": "assistant", "id": "m", "content": said}
    else:
        call = {"namespace": SERVER, "name": NAME, "arguments": "{}", "call_id": "c"}
        item = {"type": "function_call", "id": "f", **call}
    used = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 1)
    return streamed(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": used}},
    )


def calling(tool: str, arguments: dict[str, Any]) -> Route:
    """Where Claude Code asks a model that calls a tool with these arguments."""

    async def messages(request: Request) -> Response:
        """Claude Code asks here, also for a title, without tools."""
        asked = await request.json()
        blocks = [
            block
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = [each["content"] for each in blocks if each["type"] == "tool_result"]
        if results or not asked.get("tools"):
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": json.dumps(results)}
        else:
            block = {"type": "tool_use", "id": "t", "name": tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        used = {"input_tokens": 1, "output_tokens": 1}
        told = {"type": "message", "role": "assistant", "id": "m", "model": asked["model"]}
        message = {**told, "content": [], "usage": used, "stop_reason": None, "stop_sequence": None}
        why = "tool_use" if block["type"] == "tool_use" else "end_turn"
        ended = {"stop_reason": why, "stop_sequence": None}
        return streamed(
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": used},
            {"type": "message_stop"},
        )

    return Route("/v1/messages", messages, methods=["POST"])


ROUTES = [
    Route("/v1/responses", responses, methods=["POST"]),
    calling(TOOL, {}),
]
