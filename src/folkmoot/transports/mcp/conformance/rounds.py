"""Tools and a prompt that need several rounds: they answer with questions until they know enough.

The state between two rounds travels with the client; the SDK seals it, so that nobody can alter it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from folkmoot.transports.mcp.conformance.fixture import Fixture, declares, not_declared, said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from folkmoot.transports.mcp.conformance.fixture import Context, ToolResult

Questions: TypeAlias = "Mapping[str, types.InputRequest]"

ANSWERS: Mapping[str, tuple[type[Any], ...]] = {
    "elicitation/create": (types.ElicitResult,),
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "roots/list": (types.ListRootsResult,),
}
"""What answers which question."""


def form(message: str, key: str, kind: str = "string") -> types.ElicitRequest:
    """A question to the user with one field."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=message,
            requested_schema={
                "type": "object",
                "properties": {key: {"type": kind}},
                "required": [key],
            },
        )
    )


def model(text: str, max_tokens: int) -> types.CreateMessageRequest:
    """A question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


NAME = form("What is your name?", "name")
CAPITAL = model("What is the capital of France?", 100)


class Rounds(Struct, frozen=True):
    """The questions of each round, and what is said once the last ones are answered."""

    name: str
    says: str
    rounds: tuple[Questions, ...]
    stateful: bool = False
    any_of: bool = False
    """Whether questions that the client cannot be asked are left out."""

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> ToolResult:
        """One round of a tool."""
        text = self.next(ctx, params)
        return said(text) if isinstance(text, str) else text

    def next(
        self, ctx: Context, params: types.CallToolRequestParams | types.GetPromptRequestParams
    ) -> str | types.InputRequiredResult:
        """The text, or the questions that are to be answered next."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(
                code=types.INVALID_REQUEST,
                message="Questions as an answer came with MCP 2026-07-28.",
            )
        state = params.request_state
        if self.stateful and state is None:
            return self._ask(ctx, 0)
        current = int(state) if self.stateful and state is not None else 0
        answers = params.input_responses or {}
        told = {}
        for key, question in self._questions(ctx, current).items():
            answer = answers.get(key)
            if not isinstance(answer, ANSWERS[question.method]):
                return self._ask(ctx, current)
            told[key] = tell(answer)
        if current + 1 < len(self.rounds):
            return self._ask(ctx, current + 1)
        return self.says.format_map(told)

    def _ask(self, ctx: Context, number: int) -> types.InputRequiredResult:
        return types.InputRequiredResult(
            input_requests=dict(self._questions(ctx, number)),
            request_state=str(number) if self.stateful else None,
        )

    def _questions(self, ctx: Context, number: int) -> Questions:
        questions = self.rounds[number]
        possible = {key: each for key, each in questions.items() if declares(ctx, each.method)}
        if not possible or (len(possible) < len(questions) and not self.any_of):
            raise not_declared(*(each.method for each in questions.values()))
        return possible


def tell(answer: Any) -> str:
    """An answer in words."""
    if isinstance(answer, types.ElicitResult):
        return ", ".join(str(value) for value in (answer.content or {}).values()) or answer.action
    if isinstance(answer, types.ListRootsResult):
        return ", ".join(str(root.uri) for root in answer.roots)
    return str(getattr(answer.content, "text", answer.content))


CONFIRM = {"confirm": form("Please confirm", "ok", "boolean")}

TABLE = (
    Rounds("test_input_required_result_elicitation", "Hello, {user_name}!", ({"user_name": NAME},)),
    Rounds(
        "test_input_required_result_sampling",
        "The model says: {capital_question}",
        ({"capital_question": CAPITAL},),
    ),
    Rounds(
        "test_input_required_result_list_roots",
        "Roots: {client_roots}",
        ({"client_roots": types.ListRootsRequest(params=types.RequestParams())},),
    ),
    Rounds(
        "test_input_required_result_request_state",
        "state-ok: {confirm}",
        (CONFIRM,),
        stateful=True,
    ),
    Rounds(
        "test_input_required_result_multiple_inputs",
        "{greeting} {user_name} ({client_roots})",
        (
            {
                "user_name": NAME,
                "greeting": model("Generate a greeting", 50),
                "client_roots": types.ListRootsRequest(params=types.RequestParams()),
            },
        ),
        stateful=True,
    ),
    Rounds(
        "test_input_required_result_multi_round",
        "The favourite colour is {step2}.",
        (
            {"step1": form("Step 1: What is your name?", "name")},
            {"step2": form("Step 2: What is your favorite color?", "color")},
        ),
        stateful=True,
    ),
    Rounds(
        "test_input_required_result_tampered_state",
        "state-ok: {confirm}",
        (CONFIRM,),
        stateful=True,
    ),
    Rounds(
        "test_input_required_result_capabilities",
        "Enough was answered.",
        ({"user_name": NAME, "capital_question": CAPITAL},),
        any_of=True,
    ),
    Rounds("test_missing_capability", "{answer}", ({"answer": CAPITAL},)),
    Rounds("test_streaming_elicitation", "Hello, {user_name}!", ({"user_name": NAME},)),
)

ROUNDS = tuple(
    Fixture(each.name, "Asks before it answers (stateless era).", each.call) for each in TABLE
)

PROMPT_ROUNDS = Rounds(
    "test_input_required_result_prompt",
    "Use this context: {user_context}",
    ({"user_context": form("What context should the prompt use?", "context")},),
)
