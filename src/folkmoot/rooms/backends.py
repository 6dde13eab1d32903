"""Backends as participants: which a room may have, their names, and how they answer.

Each request to a backend is a task, and its answer a message that passes the same checks as
anyone's. Progress is sent twice a second at most, the last of it always; a request that is
cancelled, or timed out, is given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.entity import Entity
from folkmoot.core.mcpx import PROTOCOL
from folkmoot.core.message import JSONRPC, Request, members
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.mcp.wire import PROGRESS
from folkmoot.rooms.journal import Spawn
from folkmoot.rooms.limits import MAX_BACKEND_CALLS, PROGRESS_SECONDS
from folkmoot.rooms.machine import BACKEND, AskBackend, Role
from folkmoot.rooms.machine.members import check_name, skeleton
from folkmoot.rooms.machine.requests import progress_token
from folkmoot.rooms.model import Visitor
from folkmoot.rooms.ports import Asked, Backends
from folkmoot.telemetry.logs import AuditTrail

if TYPE_CHECKING:
    from folkmoot.rooms.live import LiveRoom


def backend_principal(namespace: str) -> Principal:
    """A backend as a participant's principal; it has no account."""
    return Principal(f"{BACKEND}{namespace}", namespace, PrincipalType.BACKEND)


def check_brought(backends: Backends | None, visitor: Visitor, namespaces: Iterable[str]) -> None:
    """Refuse backends that do not exist, or of which the visitor may use nothing.

    Which of the two it is, is not told.
    """
    for namespace in namespaces:
        if (
            visitor.account is None
            or backends is None
            or not backends.may_bring(visitor.principal, namespace)
        ):
            raise e.BackendUnknown(f"You can't use a server called {namespace}.", field="backends")


def check_likeness(namespaces: Collection[str], owners: Iterable[str]) -> None:
    """Refuse backends that could be mistaken for the hub, an owner of the room, or each other."""
    seen = {skeleton(owner): owner for owner in owners}
    for namespace in namespaces:
        try:
            check_name(namespace)
        except e.NameRefused as error:
            raise e.ArgumentInvalid(f"backends: {error.message}", field="backends") from None
        other = seen.setdefault(skeleton(namespace), namespace)
        if other != namespace:
            raise e.ArgumentInvalid(
                f"backends: {namespace} could be mistaken for {other}.", field="backends"
            )


logger = logging.getLogger("folkmoot.rooms")

Speak: TypeAlias = Callable[[bytes, Visitor, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Has a message pass the interceptors, and then posted; one that stops it raises its error."""


class RoomBackendCalls(Entity):
    """Which backends a live room has, and what they are answering."""

    live: LiveRoom
    backends: Backends | None
    spawn: Spawn
    speak: Speak
    namespaces: frozenset[str] = frozenset()
    """The room's backends, whether or not the hub has them now."""
    _calls: dict[str, asyncio.Task[None]] = {}
    _busy: Counter[str] = field(default_factory=Counter)

    @property
    def under_way(self) -> int:
        """How many requests are being answered."""
        return len(self._calls)

    def present(self) -> list[Principal]:
        """The room's backends that the hub has now."""
        known = () if self.backends is None else self.backends.known()
        return [backend_principal(name) for name in sorted(self.namespaces) if name in known]

    def ask(self, ask: AskBackend) -> None:
        """Have a backend answer."""
        name = ask.backend.name
        if self._busy[name] >= MAX_BACKEND_CALLS:
            busy = e.BackendBusy(
                f"{name} already has {MAX_BACKEND_CALLS} open requests in this room."
            )
            self.spawn(self._respond(ask, {"error": busy.as_jsonrpc()}, AuditTrail()))
            return
        task = self.spawn(self._serve(ask))
        if task is not None:
            self._calls[ask.id] = task
            self._busy[name] += 1
            task.add_done_callback(lambda _: self._done(ask))

    async def list_tools(self, ask: AskBackend) -> dict[str, Any]:
        """A backend's answer to a request for its tools that the room does not see."""
        trail = AuditTrail()
        try:
            answer = await self._answer(ask, None, trail)
            trail.deliver()
        finally:
            trail.end()
        return answer

    def cease(self, id_: str) -> None:
        """Stop waiting for an answer."""
        task = self._calls.get(id_)
        if task is not None:
            task.cancel()

    def end(self) -> None:
        """The room ends: give up everything."""
        for task in list(self._calls.values()):
            task.cancel()

    def _done(self, ask: AskBackend) -> None:
        del self._calls[ask.id]
        self._busy[ask.backend.name] -= 1

    async def _serve(self, ask: AskBackend) -> None:
        if not await self.live.make_sure():
            return
        trail = AuditTrail()
        try:
            await self._respond(ask, await self._answered(ask, trail), trail)
        finally:
            trail.end()

    async def _answered(self, ask: AskBackend, trail: AuditTrail) -> dict[str, Any]:
        token = progress_token(ask.payload)
        if token is None:
            return await self._answer(ask, None, trail)
        progress = ProgressReporter(lambda told: self._tell(ask, {**told, "progressToken": token}))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(progress.run())
            answer = await self._answer(ask, progress, trail)
            progress.end()
        return answer

    async def _answer(
        self, ask: AskBackend, progress: ProgressReporter | None, trail: AuditTrail
    ) -> dict[str, Any]:
        """The result or the error, as the members of a response."""
        payload = ask.payload
        request = Request(
            id=payload["id"], method=payload["method"], params=payload.get("params", {})
        )
        asked = Asked(
            room=self.live.name,
            namespace=ask.backend.name,
            person=ask.by,
            scope=ask.scope,
            request=request,
            trail=trail,
        )
        error: e.FolkmootError
        try:
            if self.backends is not None:
                tell = None if progress is None else progress.take
                told = members(await self.backends.answer(asked, tell))
                return {name: told[name] for name in ("result", "error") if name in told}
            error = e.BackendFailed("The hub has no backends.")
        except e.FolkmootError as refusal:
            error = refusal
        except Exception:
            logger.exception("a backend was not asked", extra={"backend": ask.backend.name})
            error = e.InternalError("The hub failed to ask the backend.")
        return {"error": error.as_jsonrpc()}

    async def _respond(self, ask: AskBackend, answer: dict[str, Any], trail: AuditTrail) -> None:
        try:
            raw = self._written(ask, ask.kind, ask.to, {"id": ask.payload["id"], **answer})
            await self._say(ask, raw, trail)
        except e.FolkmootError as error:
            # Without effect if it was delivered: then it is the room that refused it.
            trail.withhold()
            refused: e.FolkmootError = error
            if isinstance(error, e.MessageError):
                # What was done upstream is done: whoever asked is to know that it was.
                refused = e.BackendFailed(
                    f"{ask.backend.name} answered, but the room cannot carry the answer: "
                    f"{error.message}"
                )
            failed = {"id": ask.payload["id"], "error": refused.as_jsonrpc()}
            # The request may be closed by now, or the room.
            with suppress(e.FolkmootError):
                await self._post(ask, self._written(ask, ask.kind, ask.to, failed))

    async def _tell(self, ask: AskBackend, params: dict[str, Any]) -> None:
        with suppress(e.FolkmootError):
            told = {"method": PROGRESS, "params": params}
            raw = self._written(ask, f"mcp.notification.{PROGRESS}", ask.to[:1], told)
            await self._say(ask, raw, AuditTrail())

    async def _say(self, ask: AskBackend, raw: bytes, trail: AuditTrail) -> None:
        """Say something in a backend's name, as anyone says something."""

        async def post() -> None:
            trail.deliver()
            await self._post(ask, raw)

        await self.speak(raw, Visitor(ask.backend, None, self.live.room_id), post)

    def _written(
        self, ask: AskBackend, kind: str, to: tuple[str, ...], payload: dict[str, Any]
    ) -> bytes:
        message = {
            "protocol": PROTOCOL,
            "kind": kind,
            "to": to,
            "correlation_id": (ask.id,),
            "payload": {"jsonrpc": JSONRPC, **payload},
        }
        try:
            return strict.encode(message)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise e.InvalidJson("It cannot be written as JSON.") from None

    async def _post(self, ask: AskBackend, raw: bytes) -> None:
        """Post a message, however long its backend must wait for its turn.

        Whoever asked is not answered later than the request is open: then it is refused.
        """
        while True:
            try:
                await self.live.post(ask.backend, Role.BACKEND, raw)
            except e.RateLimited as error:
                await asyncio.sleep(error.data["retry_after"])
            else:
                return


class ProgressReporter(Entity):
    """The latest of one request's progress, told now and then."""

    tell: Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
    _latest: dict[str, Any] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, params: dict[str, Any]) -> None:
        """Report progress."""
        self._latest = params
        self._news.set()

    def end(self) -> None:
        """It comes no further: `run` tells what is left, and returns."""
        self._ended.set()
        self._news.set()

    async def run(self) -> None:
        """Tell it, not too often."""
        while not self._ended.is_set():
            await self._news.wait()
            await self._tell_latest()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_SECONDS):
                    await self._ended.wait()
        await self._tell_latest()

    async def _tell_latest(self) -> None:
        self._news.clear()
        latest, self._latest = self._latest, None
        if latest is not None:
            await self.tell(latest)
