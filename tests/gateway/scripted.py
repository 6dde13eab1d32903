"""A backend that answers from a table, for tests of what stands before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.clock import SystemClock
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import Request, Response
from folkmoot.core.policy import Principal, decide
from folkmoot.core.ports import Admitted
from folkmoot.core.session import Era
from folkmoot.core.timing import TimingContext
from folkmoot.gateway.audit import CallAudit
from folkmoot.gateway.gateway import Gateway
from folkmoot.gateway.model import BackendState, Inventory, UpstreamRequest
from folkmoot.gateway.pins import Pins
from folkmoot.gateway.requests import GATEWAY_CALL, CallExtras, Inputs
from folkmoot.gateway.service import GatewayService
from folkmoot.gateway.tasks import Tasks
from folkmoot.relay.upstream.consents import Consents
from folkmoot.settings.backends import BackendSpec
from folkmoot.store import SqliteStore
from folkmoot.vault import Vault
from tests.stores import open_store

KEY = b"k" * 32
ANNA = Principal("id-anna", "anna")
BERT = Principal("id-bert", "bert")
ALL = Rights(["mcp.*"])


class Scripted:
    """Answers with what `answer` makes of a request, and remembers what it was asked."""

    def __init__(
        self,
        namespace: str,
        answer: Callable[[UpstreamRequest], Any] = lambda wanted: {"content": []},
        **spec: Any,
    ) -> None:
        self.spec = BackendSpec(name=namespace, namespace=namespace, command=("x",), **spec)
        self.state = BackendState.UP
        self.why = ""
        self.asked: list[UpstreamRequest] = []
        self._answer = answer

    async def request(self, wanted: UpstreamRequest) -> Response:
        self.asked.append(wanted)
        answer = self._answer(wanted)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(id="theirs", result=answer)


def tool(name: str, *, properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A definition of a tool."""
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


class Behind:
    """A gateway on a store of its own, with the service before it."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.clock = SystemClock()
        self.pins = Pins(store, self.clock)
        self.gateway = Gateway(
            self.pins,
            CallAudit(KEY),
            Tasks(Vault(KEY, "test"), self.clock),
            server_info={"name": "folkmoot", "version": "0"},
        )
        self.consents = Consents(
            store, self.clock, Vault(KEY, "test"), self._spec, {}, "https://hub.example"
        )
        self.service = GatewayService(self.gateway, self.clock, Inputs(KEY), self.consents)

    def _spec(self, namespace: str) -> BackendSpec | None:
        found = self.gateway.backends.get(namespace)
        return None if found is None else found.spec

    async def has(self, backend: Scripted, **inventory: Any) -> Scripted:
        """Have a backend that lists this."""
        self.gateway.attach(backend)
        await self.gateway.arrived(backend.spec.namespace, Inventory(**inventory))
        return backend

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        principal: Principal = ANNA,
        extras: CallExtras | None = None,
    ) -> Response:
        """The answer to a request that policy has let through."""
        request = Request(id=7, method=method, params=params)
        context = MessageContext(
            TimingContext(0.0, 0.0),
            MessageDirection.CLIENT_TO_SERVER,
            extensions={GATEWAY_CALL: extras or CallExtras(era=Era.HANDSHAKE)},
        )
        kind = decide(principal, ALL, request).kind
        admitted = Admitted(MessageEnvelope(request, context), principal, ALL, kind)
        return await self.service.perform(admitted)

    async def call(self, name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
        """The result of a tool."""
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        return (await self.ask("tools/call", params, **more)).result


@asynccontextmanager
async def behind(folder: Path) -> AsyncIterator[Behind]:
    """A gateway on a store in a folder."""
    store = await open_store(folder / "folkmoot.db")
    try:
        made = Behind(store)
        await made.pins.load()
        yield made
    finally:
        await store.close()


def told(result: dict[str, Any]) -> dict[str, Any]:
    """What the error of a tool says."""
    assert result["isError"] is True
    return msgspec.json.decode(result["content"][0]["text"])


async def turn() -> None:
    """Let whatever is ready go on."""
    for _ in range(5):
        await asyncio.sleep(0)
