"""A small server that does what a test asks of it, in either era, and the settings to reach it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from folkmoot.clock import SystemClock
from folkmoot.core.message import Notification, Response
from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.relay.upstream.backend import LiveBackend
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.settings.backends import BackendSpec
from tests.mcp.client.saying import python

CLOCK = SystemClock()
ERAS = ("handshake", "stateless")
FORM: dict[str, Any] = {"elicitation": {"form": {}}}
both_eras = pytest.mark.parametrize("era", ERAS)

SERVER = r"""
import json, os, signal, sys, threading, time
era, *options = sys.argv[1:]
seen, open_, tools, wrote = [], {}, ["echo", "die"], threading.Lock()
CAPABILITIES = {
    "tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {},
}

if "deaf" in options:
    CAPABILITIES["resources"] = {}

def say(**message):
    with wrote:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

def answer(id, **result):
    say(id=id, result={"resultType": "complete", **result})

def note(method, **params):
    say(method=method, params=params)

def journal(what):
    if "JOURNAL" in os.environ:
        with open(os.environ["JOURNAL"], "a") as did:
            did.write(what + "\n")

def end(*_):
    journal("ended")
    os._exit(0)

def listens():
    for id in [each["id"] for each in seen if each.get("method") == "subscriptions/listen"]:
        yield {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
    if era == "handshake":
        yield {}

def call(id, name, arguments, meta):
    if name == "echo":
        answer(id, content=[], said=arguments, meta=meta, pid=os.getpid())
    elif name == "seen":
        answer(id, content=[], seen=seen)
    elif name == "die":
        journal("done")
        os._exit(3)
    elif name == "linger":
        # What it started goes on for a while after it has ended.
        signal.signal(signal.SIGTERM, end)
        if os.fork():
            os._exit(0)
        time.sleep(60)
    elif name == "ask":
        open_["q%s" % id] = id
        say(id="q%s" % id, method=arguments["asks"], params=arguments.get("about", {}))
    elif name == "log":
        note("notifications/message", level=arguments["level"], data=arguments["data"])
        if not arguments.get("only"):
            answer(id, content=[])
    elif name == "progress":
        for done in range(arguments["times"]):
            note("notifications/progress", progressToken=meta.get("progressToken"), progress=done)
        answer(id, content=[])
    elif name == "late":
        say(id=arguments["id"], result={"late": True})
        note("notifications/progress", progressToken=987654, progress=1)
        note("notifications/of-nothing")
        answer(id, content=[])
    elif name == "flood":
        threading.Thread(target=flood, daemon=True).start()
        answer(id, content=[])
    elif name == "grow":
        tools.append(arguments["name"])
        for params in listens():
            note("notifications/tools/list_changed", **params)
        answer(id, content=[])
    elif name == "touch":
        for params in listens():
            note("notifications/resources/updated", uri=arguments["uri"], **params)
        answer(id, content=[])
    elif name == "environment":
        answer(id, content=[], environment=dict(os.environ), cwd=os.getcwd())
    elif name == "slow":
        time.sleep(arguments["nap"])
        answer(id, content=[], pid=os.getpid())
    elif name == "stuck":
        time.sleep(3600)

def flood():
    while True:
        sys.stdout.write('{"jsonrpc":"2.0","method":"notifications/of-nothing"}\n' * 1000)

def request(id, method, params):
    global era
    if era == "both":
        # As official servers do: what is asked first decides for the whole connection.
        era = "handshake" if method == "initialize" else "stateless"
    if method == "initialize" and era == "handshake":
        say(id=id, result={"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES,
            "serverInfo": {"name": "scripted", "version": "1"}, "instructions": "Ask."})
    elif method == "server/discover" and era == "stateless":
        answer(id, supportedVersions=["2026-07-28"], capabilities=CAPABILITIES,
            instructions="Ask.",
            _meta={"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}})
    elif method == "server/discover" and "silent" in options:
        pass
    elif method == "server/discover" and "touchy" in options:
        os._exit(4)
    elif method == "tools/list":
        answer(id, tools=[{"name": name, "inputSchema": {}} for name in tools])
    elif method == "resources/list":
        answer(id, resources=[{"uri": "note://1", "name": "one"}])
    elif method == "subscriptions/listen" and era == "stateless":
        note("notifications/subscriptions/acknowledged", notifications=params["notifications"],
            _meta={"io.modelcontextprotocol/subscriptionId": id})
    elif method in ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        say(id=id, result={})
    elif method == "completion/complete" and params.get("hang"):
        pass
    elif method == "tools/call" and params["name"] == "begin":
        task = {"taskId": "task of %s" % os.getpid(), "status": "working"}
        answer(id, **({"task": task} if "task" in params else {**task, "resultType": "task"}))
    elif method == "tasks/get":
        answer(id, taskId="task of %s" % os.getpid(), status="working")
    elif method == "tools/call":
        call(id, params["name"], params.get("arguments", {}), params.get("_meta", {}))
    else:
        say(id=id, error={"code": -32601, "message": "Method not found: " + method})

journal("began")
if "broken" in options:
    print("no such module: sesame", file=sys.stderr, flush=True)
    sys.exit(2)
for line in sys.stdin:
    message = json.loads(line)
    seen.append(message)
    if "method" not in message:
        answer(open_.pop(message["id"]), content=[], answered=message)
    elif "id" in message:
        request(message["id"], message["method"], message.get("params", {}))
"""


def command(era: str = "handshake", *options: str) -> tuple[str, ...]:
    return (*python(SERVER), era, *options)


def spec(
    namespace: str = "demo", era: str = "handshake", *options: str, **more: Any
) -> BackendSpec:
    if "url" not in more:
        more.setdefault("command", command(era, *options))
    more.setdefault("connect_seconds", 20)
    return BackendSpec(name=namespace, namespace=namespace, **more)


def call(tool: str, /, **options: Any) -> UpstreamRequest:
    """A call of a tool: what `UpstreamRequest` knows goes there, the rest are arguments."""
    known = {
        name: options.pop(name)
        for name in list(options)
        if name in UpstreamRequest.__struct_fields__
    }
    return UpstreamRequest(
        method="tools/call", params={"name": tool, "arguments": options}, **known
    )


def resumed(
    wanted: UpstreamRequest, answer: Response, responses: dict[str, Any]
) -> UpstreamRequest:
    """The same call again, with the input that was wanted."""
    given = {"requestState": answer.result["requestState"], "inputResponses": responses}
    return replace(wanted, params={**wanted.params, **given})


@asynccontextmanager
async def talking(
    era: str = "handshake", *options: str, seconds: float = 20, **more: Any
) -> AsyncIterator[BackendConversation]:
    """A conversation with a scripted server."""
    connecting = Connecting(spec("demo", era, *options), CLOCK, {})
    async with BackendConversation.opened(connecting.link, seconds=seconds, **more) as conversation:
        yield conversation


async def seen(conversation: Any, method: str) -> list[dict[str, Any]]:
    """What the server has received of a method so far."""
    seconds = (20,) if isinstance(conversation, BackendConversation) else ()
    found = (await conversation.request(call("seen"), *seconds)).result["seen"]
    return [message for message in found if message.get("method") == method]


async def leave(calling: asyncio.Future[Any]) -> None:
    """Have callers leave."""
    calling.cancel()
    await asyncio.wait([calling])


class Told:
    """Someone who waits for what they are told, such as whatever a call tells meanwhile."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._more = asyncio.Event()

    def __call__(self, *things: Any) -> None:
        self.things.append(things[0] if len(things) == 1 else things)
        self._more.set()

    async def until(self, ready: Callable[[list[Any]], bool]) -> list[Any]:
        while not ready(self.things):
            self._more.clear()
            await self._more.wait()
        return self.things

    def said(self, member: str) -> list[Any]:
        """A member of the params of all notifications."""
        return [each.params[member] for each in self.things if isinstance(each, Notification)]


class Running:
    """A backend that runs, and what it tells."""

    async def ask(self, tool: str, /, **options: Any) -> Any:
        """What a tool answers."""
        return (await self.backend.request(call(tool, **options))).result

    def __init__(self, settings: BackendSpec, environ: dict[str, str]) -> None:
        self.arrivals = Told()
        self.losses = Told()
        told: Any = {"on_inventory": self._arrived, "on_lost": self.losses}
        self.backend = LiveBackend(settings, CLOCK, environ=environ, **told)

    async def _arrived(self, _: str, inventory: Inventory) -> None:
        self.arrivals(inventory)

    @property
    def process(self) -> int:
        link: Any = self.backend.lines[0].conversation.link
        return int(link.process_id)

    async def until(self, ready: Callable[[LiveBackend], bool]) -> None:
        while not ready(self.backend):
            await self.backend.health.changed(60)


@asynccontextmanager
async def running(
    settings: BackendSpec, environ: dict[str, str] | None = None, *, reached: bool = True
) -> AsyncIterator[Running]:
    """Run a backend, once it was reached."""
    there = Running(settings, {} if environ is None else environ)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(there.backend.run())
        try:
            if reached:
                await there.arrivals.until(bool)
            yield there
        finally:
            task.cancel()
