r"""An agent that must propose before it may act.

    FOLKMOOT_TOKEN=sk_… python examples/proposer.py --room square \
        --to files --tool write_file --arguments '{"path": "notes.txt", "text": "hello"}'

It calls the tool. Where the room lets it only propose, it proposes the call, waits until somebody
who may has made it or said no, and reports what came of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import Any

from folkmoot.client import FolkmootError, Outcome, ProposalRequired, Room, ToolFailed, ToolResult

GOODBYE = 2.0


def told(outcome: Outcome) -> str:
    """What came of a proposal, in a sentence."""
    if outcome.state == "rejected":
        return f"{outcome.by} rejected it: {outcome.reason}"
    if outcome.state != "fulfilled":
        return f"It was {outcome.state}." if outcome.state == "withdrawn" else "It expired."
    if outcome.error is not None:
        return f"{outcome.by} tried it, and it failed: {outcome.error}"
    words = ToolResult(tuple(outcome.result.get("content", ()))).text
    if outcome.result.get("isError"):
        return f"{outcome.by} tried it, and the tool failed: {words}"
    return f"{outcome.by} did it: {words}"


async def act(room: Room, to: str, tool: str, arguments: Any, expires_in: float | None) -> str:
    """Do it, or have it done; the answer says which."""
    try:
        return f"I did it: {(await room.call(to, tool, arguments)).text}"
    except ProposalRequired:
        print("I may only propose it.", flush=True)
    except ToolFailed as failure:
        return f"I tried it, and the tool failed: {failure}"
    params = {"name": tool, "arguments": arguments}
    proposal = await room.propose("tools/call", params, to=to, expires_in=expires_in)
    print(f"Proposed as {proposal.id}; waiting for somebody to decide.", flush=True)
    try:
        return told(await proposal.outcome())
    except asyncio.CancelledError:
        # Ctrl-C: nobody should decide on what nobody waits for.
        with suppress(FolkmootError, TimeoutError):
            async with asyncio.timeout(GOODBYE):
                await room.withdraw(proposal)
        raise


async def propose(options: argparse.Namespace, token: str) -> None:
    """Come in, act, and report."""
    async with Room(options.url, room=options.room, token=token) as room:
        report = await act(room, options.to, options.tool, options.arguments, options.expires_in)
        print(report, flush=True)
        await room.say(f"About {options.tool}: {report}")


def main() -> int:
    """Read the options and run until it is decided, or until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Acts, or proposes to.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="the hub's address")
    parser.add_argument("--room", required=True, help="the room's name")
    parser.add_argument("--to", default="gateway", help="the participant who has the tool")
    parser.add_argument("--tool", default="chat.say", help="the tool to call")
    parser.add_argument("--arguments", type=json.loads, default={}, help="its arguments, as JSON")
    parser.add_argument("--expires-in", type=float, help="seconds the proposal stays open")
    options = parser.parse_args()
    token = os.environ.get("FOLKMOOT_TOKEN")
    if not token:
        parser.error("the variable FOLKMOOT_TOKEN must hold the agent's token")
    try:
        asyncio.run(propose(options, token))
    except KeyboardInterrupt:
        pass
    except (FolkmootError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
