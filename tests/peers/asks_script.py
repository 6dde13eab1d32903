"""Runs an example that asks before it calls a tool, in the environment of its framework.

Its model is the framework's own for tests. It calls the tool, again if it reads that only other
arguments were approved, and then repeats what it read.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import import_module

NAME, PATHS, OPTIONS = sys.argv[1], sys.argv[2].split(os.pathsep), sys.argv[3:]
CALL = {"version": "1.2", "place": "production"}


def called(read):
    """The arguments of the next call, after all that was read; None if there is none."""
    if not read:
        return CALL
    other = re.search(r"with these arguments only: (\{.*\})", read[-1])
    return json.loads(other[1]) if other else None


def claude_agent():
    # Claude Code's model is elsewhere: see model.py.
    return None


def openai_agents():
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *_, **__):  # noqa: A002
            items = [] if isinstance(input, str) else input
            read = [it["output"] for it in items if it.get("type") == "function_call_output"]
            if (arguments := called(read)) is None:
                text = ResponseOutputText(type="output_text", text=read[-1], annotations=[])
                said = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            else:
                said = ResponseFunctionToolCall(
                    type="function_call",
                    name="deploy",
                    call_id=f"c{len(read)}",
                    arguments=json.dumps(arguments),
                )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    return Scripted()


def langchain():
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **_):
            return self

        def _generate(self, messages, *_, **__):
            read = [each.text for each in messages if each.type == "tool"]
            if (arguments := called(read)) is None:
                said = AIMessage(read[-1])
            else:
                call = {"name": "deploy", "args": arguments, "id": f"c{len(read)}"}
                said = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=said)])

    return Scripted()


def pydantic_ai():
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def say(messages, _):
        parts = (part for each in messages for part in each.parts)
        read = [part.content for part in parts if part.part_kind == "tool-return"]
        arguments = called(read)
        said = TextPart(read[-1]) if arguments is None else ToolCallPart("deploy", arguments)
        return ModelResponse(parts=[said])

    return FunctionModel(say)


def main():
    model = globals()[NAME]()
    # At the end: what the framework needs is first looked for in its own environment.
    sys.path += PATHS
    example = import_module(f"asks_{NAME}")
    if model is not None:
        agent_of = example.agent_of
        example.agent_of = lambda _: agent_of(model)
    sys.argv[1:] = OPTIONS
    example.main()


if __name__ == "__main__":
    main()
