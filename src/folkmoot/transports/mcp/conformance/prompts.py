"""The prompts of the conformance suite, and the completion of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from folkmoot.transports.mcp.conformance.content import embedded, image
from folkmoot.transports.mcp.conformance.rounds import PROMPT_ROUNDS

if TYPE_CHECKING:
    from folkmoot.transports.mcp.conformance.fixture import Context

Content: TypeAlias = list[types.ContentBlock]

WORDS = ("paris", "park", "party", "test")
"""What completion knows."""


def text(words: str) -> types.TextContent:
    """Text in a prompt."""
    return types.TextContent(text=words)


def resource_prompt(given: Mapping[str, str]) -> Content:
    """A prompt with the resource whose URI is given."""
    return [
        embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ]


BUILDERS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, str]], Content]]] = {
    "test_simple_prompt": ((), lambda _: [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (
        ("arg1", "arg2"),
        lambda given: [
            text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        ],
    ),
    "test_prompt_with_embedded_resource": (("resourceUri",), resource_prompt),
    "test_prompt_with_image": ((), lambda _: [image(), text("Please analyze the image above.")]),
}
"""Each prompt's arguments, all of them required, and what it is made of."""

PROMPTS = [
    types.Prompt(
        name=name,
        description="A prompt of the conformance suite.",
        arguments=[types.PromptArgument(name=each, required=True) for each in arguments],
    )
    for name, arguments in (
        *((name, arguments) for name, (arguments, _) in BUILDERS.items()),
        (PROMPT_ROUNDS.name, ()),
    )
]


async def list_prompts(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    """All prompts."""
    return types.ListPromptsResult(prompts=PROMPTS)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    """One prompt with its arguments filled in."""
    if params.name == PROMPT_ROUNDS.name:
        told = PROMPT_ROUNDS.next(ctx, params)
        return prompt([text(told)]) if isinstance(told, str) else told
    if params.name not in BUILDERS:
        raise MCPError(code=types.INVALID_PARAMS, message="Prompt not found")
    arguments, build = BUILDERS[params.name]
    given = params.arguments or {}
    if missing := [each for each in arguments if each not in given]:
        raise MCPError(
            code=types.INVALID_PARAMS, message=f"Missing arguments: {', '.join(missing)}"
        )
    return prompt(build(given))


def prompt(content: Content) -> types.GetPromptResult:
    """A prompt that is all the user's words."""
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=each) for each in content]
    )


async def complete(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """The words that begin as the argument does."""
    values = [word for word in WORDS if word.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(values=values, total=len(values), has_more=False)
    )
