"""A server whose calls log, tell progress, ask and wait as their arguments say, all at once.

python crowd_server.py handshake|stateless        on standard input and output

It imports nothing of ours, so that a process of it starts quickly.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Say = Callable[[dict[str, Any]], Awaitable[None]]

OFFERS = {"tools": {}, "logging": {}}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": OFFERS}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": OFFERS, "serverInfo": {}}
TOOLS = {"tools": [{"name": "work", "inputSchema": {}}]}
OPENING = {"handshake": {"initialize": INITIALIZED}, "stateless": {"server/discover": DISCOVERED}}


class CrowdServer:
    """The calls of one server, however they reach it."""

    def __init__(self, era: str, seed: int = 1) -> None:
        self.era = era
        # Questions that were answered although nobody waited for their call.
        self.wrong: list[str] = []
        self._random = random.Random(seed)
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._working: dict[Any, asyncio.Event] = {}
        self._late: set[asyncio.Task[None]] = set()

    async def request(self, message: dict[str, Any], say: Say, aside: Say) -> dict[str, Any]:
        """The answer to a request; `say` is its own stream, `aside` one that is everybody's."""
        method, params = message["method"], message.get("params", {})
        if method == "tools/call":
            return await self._call(message["id"], params, say, aside)
        known = {"tools/list": TOOLS, "ping": {}, "logging/setLevel": {}, **OPENING[self.era]}
        found = {**known, "seen": {"wrong": self.wrong}}
        if method in found:
            return {"result": {"resultType": "complete", **found[method]}}
        return {"error": {"code": -32601, "message": f"Method not found: {method}"}}

    def told(self, message: dict[str, Any]) -> None:
        """A notification, or an answer to a question."""
        if message.get("method") == "notifications/cancelled":
            gone = self._working.get(message["params"]["requestId"])
            if gone is not None:
                gone.set()
        elif "method" not in message:
            asked = self._asked.pop(message["id"], None)
            if asked is not None:
                asked.set_result(message)

    async def _call(self, id_: Any, params: dict[str, Any], say: Say, aside: Say) -> dict[str, Any]:
        given, meta = params["arguments"], params.get("_meta", {})
        name = f"{given['who']}/{given['n']}"
        begin, answers = json.loads(params.get("requestState", "[0, []]"))
        answers += [each["content"] for each in params.get("inputResponses", {}).values()]
        gone = self._working[id_] = asyncio.Event()
        try:
            for place, step in list(enumerate(given["steps"]))[begin:]:
                for _ in range(self._random.randrange(6)):
                    await asyncio.sleep(0)
                if step == "ask" and self.era == "stateless":
                    state = json.dumps([place + 1, answers])
                    wish = {"inputRequests": {"q": asks(f"{name}/{place}")}, "requestState": state}
                    return {"result": {"resultType": "input_required", **wish}}
                if step == "ask":
                    answers.append(await self.ask(f"{name}/{place}", say))
                elif step == "log":
                    await say(logged(f"{name}/{place}"))
                elif "progressToken" in meta:
                    token = {"progressToken": meta["progressToken"], "progress": place}
                    await say(notice("progress", message=f"{name}/{place}", **token))
            if given["hangs"]:
                await gone.wait()
                late = asyncio.create_task(self._after(f"{name}/late", say, aside))
                self._late.add(late)
                await late
            return {"result": {"resultType": "complete", "content": [], "answers": answers}}
        finally:
            del self._working[id_]

    async def _after(self, name: str, say: Say, aside: Say) -> None:
        """What a call says that nobody waits for any more."""
        for way in (aside, say):
            await way(logged(name))
            if await self.ask(name, way) is not None:
                self.wrong.append(name)

    async def ask(self, name: str, say: Say) -> Any:
        """Put a question, and wait for what is answered to it; None if that is an error."""
        id_ = f"q{len(self._asked)}-{self._random.getrandbits(64)}"
        asked = self._asked[id_] = asyncio.get_running_loop().create_future()
        await say({"id": id_, **asks(name)})
        return (await asked).get("result", {}).get("content")


def asks(name: str) -> dict[str, Any]:
    params = {"message": name, "requestedSchema": {"type": "object", "properties": {}}}
    return {"method": "elicitation/create", "params": params}


def notice(name: str, **params: Any) -> dict[str, Any]:
    return {"method": f"notifications/{name}", "params": params}


def logged(name: str) -> dict[str, Any]:
    return notice("message", level="info", data=name)


async def serve_stdio(era: str) -> None:
    """Serve on standard input and output."""
    server, loop, tasks = CrowdServer(era), asyncio.get_running_loop(), set()

    async def say(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    async def answer(message: dict[str, Any]) -> None:
        await say({"id": message["id"], **await server.request(message, say, say)})

    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        message = json.loads(line)
        if "method" in message and "id" in message:
            task = loop.create_task(answer(message))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        else:
            server.told(message)


if __name__ == "__main__":
    asyncio.run(serve_stdio(sys.argv[1]))
