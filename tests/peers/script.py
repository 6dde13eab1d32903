"""What a client does with server-everything, and what it gets: all that a proxy could spoil."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.peers.clients import Ears

RESOURCE: Final = "demo://resource/dynamic/text/1"
UPDATED: Final = "notifications/resources/updated"
LOGGED: Final = "notifications/message"

# What is another one in each conversation, and what it is written as.
VOLATILE: Final = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"), "SESSION"),
    (re.compile(r"\[redacted:session:[0-9a-f]+\]"), "SESSION"),
    (re.compile(r"\d{1,2}:\d\d:\d\d( ?[AP]M)?"), "TIME"),
    (re.compile(r"(for|from) session (SESSION|undefined)|(?<= )$"), ""),
)


async def everything_done(client: Client, ears: Ears) -> dict[str, Any]:
    """Use all that the server has, in one order; the results by what was done."""
    did = await everything_used(client, ears)
    return did | {name: normal(each) for name, each in (await listened(client, ears)).items()}


async def everything_used(client: Client, ears: Ears) -> dict[str, Any]:
    """Ask for all that the server has; what it says by itself is another matter."""
    did: dict[str, Any] = {
        "server": client.server_info,
        "capabilities": client.server_capabilities,
        "instructions": client.instructions,
        "tools": await client.list_tools(),
    }
    progress: list[Any] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append([done, total, message])

    call = client.call_tool
    await give_up(client)
    did["echo"] = await call("echo", {"message": "Grüße \u2028 ✓ \U0001f600"})
    did["sum"] = await call("get-sum", {"a": 2, "b": 3})
    did["structured"] = await call("get-structured-content", {"location": "Chicago"})
    did["image"] = await call("get-tiny-image", {})
    did["annotated"] = await call("get-annotated-message", {"messageType": "error"})
    long = {"duration": 0.1, "steps": 4}
    did["long"] = await call("trigger-long-running-operation", long, progress_callback=note)
    did["progress"] = progress
    did["sampled"] = await call("trigger-sampling-request", {"prompt": "Hello", "maxTokens": 9})
    did["elicited"] = await call("trigger-elicitation-request", {})
    did["asked"] = ears.asked
    did["roots"] = await refusal(call("get-roots-list", {}))
    did["unknown tool"] = await refusal(call("no-such-tool", {}))
    did["bad arguments"] = await refusal(call("get-sum", {"a": "x"}))
    did["resources"] = await client.list_resources()
    did["templates"] = await client.list_resource_templates()
    did["read"] = await client.read_resource(RESOURCE)
    did["unknown resource"] = await refusal(client.read_resource("demo://nothing"))
    did["prompts"] = await client.list_prompts()
    did["prompt"] = await client.get_prompt("args-prompt", {"city": "Oslo", "state": "none"})
    did["completed"] = await completion(client)
    did["ping"] = await client.send_ping()
    return {name: normal(value) for name, value in did.items()}


async def completion(client: Client) -> Any:
    """What the server makes of the beginning of an argument."""
    from mcp_types import PromptReference

    prompt = PromptReference(type="ref/prompt", name="completable-prompt")
    return await client.complete(prompt, {"name": "department", "value": "E"})


async def give_up(client: Client) -> None:
    """Cancel a call that takes longer than anyone waits."""
    long = {"duration": 1.5, "steps": 1}
    calling = asyncio.ensure_future(client.call_tool("trigger-long-running-operation", long))
    await client.send_ping()
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()


async def listened(client: Client, ears: Ears) -> dict[str, Any]:
    """What the server says by itself: a log line, and that a resource has changed."""
    session = client.session
    await session.set_logging_level("debug")
    ears.notices.clear()
    did = {"subscribed": await session.subscribe_resource(RESOURCE)}
    did["toggled"] = await client.call_tool("toggle-subscriber-updates", {})
    did["updated"] = await ears.until(UPDATED)
    did["logged"] = await ears.until(LOGGED)
    await client.call_tool("toggle-subscriber-updates", {})
    ears.notices.clear()
    did["unsubscribed"] = await session.unsubscribe_resource(RESOURCE)
    # The last thing the server says: the SDK's client does not like to hear more as it leaves.
    await ears.until(LOGGED)
    return did


async def files_used(client: Client, folder: Path) -> list[Any]:
    """What a client does with server-filesystem, and what it gets."""
    inside, outside = str(folder / "a.txt"), str(folder.parent / "b.txt")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_allowed_directories", {}),
        ("write_file", {"path": inside, "content": "Grüße\nzweite Zeile\n"}),
        ("read_text_file", {"path": inside, "head": 1}),
        ("edit_file", {"path": inside, "edits": [{"oldText": "zweite", "newText": "dritte"}]}),
        ("list_directory_with_sizes", {"path": str(folder)}),
        ("directory_tree", {"path": str(folder)}),
        ("search_files", {"path": str(folder), "pattern": "*.txt"}),
        ("read_text_file", {"path": outside}),
        ("write_file", {"path": outside, "content": "x"}),
        ("move_file", {"source": inside, "destination": str(folder / "c.txt")}),
        ("read_multiple_files", {"paths": [str(folder / "c.txt"), inside]}),
    ]
    did = [normal(await client.list_tools())]
    for name, arguments in calls:
        did.append(normal(await refusal(client.call_tool(name, arguments))))
    return did


async def refusal(asking: Any) -> Any:
    """The error that a request ends with, or the answer where it has one."""
    try:
        return await asking
    except MCPError as error:
        return {"code": error.code, "message": error.message, "data": error.data}


def normal(value: Any) -> Any:
    """A result as JSON values, without what differs each time."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        return {name: normal(each) for name, each in value.items()}
    if isinstance(value, list):
        return [normal(each) for each in value]
    if isinstance(value, str):
        for pattern, words in VOLATILE:
            value = pattern.sub(words, value)
    return value
