"""What servers that take notes have in common, whichever library made them."""

from __future__ import annotations

from typing import Any

import mcp_types as types

STATELESS = "2026-07-28"
PIXEL = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def show_all() -> list[Any]:
    """Everything that a result can hold."""
    note = types.TextResourceContents(uri="note://today", text="Rain.")
    return [
        types.TextContent(type="text", text="see note://today"),
        types.ImageContent(type="image", data=PIXEL, mime_type="image/gif"),
        types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
        types.ResourceLink(type="resource_link", uri="note://tomorrow", name="tomorrow"),
        types.EmbeddedResource(type="resource", resource=note),
    ]


async def today() -> str:
    """The note of today."""
    return "Rain."


async def note(name: str) -> str:
    """Any note."""
    return f"About {name}."


async def summarise(topic: str) -> str:
    """Ask for a summary."""
    return f"Summarise {topic}."


async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    """The beginning again, and of what it is."""
    where = getattr(ref, "uri", None) or getattr(ref, "name", "")
    return types.Completion(values=[f"{argument.value}…", where])


def fill(server: Any, hints: Any, error: type[Exception]) -> None:
    """Give a server what needs nothing of its library."""

    async def failing() -> str:
        """Fail, in words."""
        raise error("There is no ink.")

    server.tool(annotations=hints)(add)
    server.tool(name="showAll")(show_all)
    server.tool()(failing)
    server.resource("note://today", mime_type="text/plain")(today)
    server.resource("note://{name}")(note)
    server.prompt()(summarise)
    server.completion()(complete)


def led_to(url: str, ctx: Any) -> Any:
    """Lead someone to a page, in the stateless era."""
    answers = ctx.input_responses or {}
    if "page" in answers:
        return f"{answers['page'].action} {ctx.request_state}"
    page = types.ElicitRequestURLParams(message="Please look.", url=url, elicitation_id="theirs")
    return types.InputRequiredResult(
        input_requests={"page": types.ElicitRequest(params=page)}, request_state=url
    )
