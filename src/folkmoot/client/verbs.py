"""Everything one can do in a room: each verb is a message, and done when the hub has stored it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal
from uuid import uuid4

import msgspec

from folkmoot.client.model import Invitation, Message, ToolResult, failed
from folkmoot.client.pending import MadeProposals, OnProgress, Proposal, Questions
from folkmoot.client.queues import Outbox
from folkmoot.core import chat
from folkmoot.core import errors as e
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import parse
from folkmoot.core.message import JSONRPC
from folkmoot.mcp.wire import CANCELLED, PROGRESS, TOOLS_CALL

Names = Iterable[str] | str


class Verbs:
    """The verbs. Each waits for the hub, also across lost connections; a refusal is raised.

    A refusal is the error of `folkmoot.core.errors` that has the hub's code: `CapabilityDenied`,
    `ProposalRequired`, `RecipientUnknown`, `RateLimited` and the others.
    """

    def __init__(self) -> None:
        self._outbox = Outbox()
        self._questions = Questions()
        self._proposals = MadeProposals()

    @property
    def last_seq(self) -> int:
        """The last message this program knows of."""
        return 0

    async def say(
        self,
        text: str,
        *,
        format: Literal["plain", "markdown"] | None = None,  # noqa: A002 - the word of the protocol
        to: Names = (),
        thread_id: str | None = None,
        reply_to: str | None = None,
        mentions: Sequence[str] | None = None,
        replaces: str | None = None,
    ) -> Message:
        """Say something in chat. Everyone reads it; `to` says who is meant.

        With `replaces`, the id of an earlier chat message of yours, it takes that one's place.
        """
        body = {
            "text": text,
            "format": format,
            "thread_id": thread_id,
            "reply_to": reply_to,
            "mentions": mentions,
            "replaces": replaces,
        }
        return await self.send("chat.message", _given(body), to=to)

    async def delete(self, message_id: str) -> Message:
        """Delete what you said in a chat message: its words are gone, for everyone."""
        body = {"text": chat.GONE, chat.REPLACES: message_id, chat.DELETED: True}
        return await self.send("chat.message", body)

    async def send(
        self,
        kind: str,
        payload: Mapping[str, Any] | None = None,
        *,
        to: Names = (),
        correlation_id: Names = (),
        context: str | None = None,
    ) -> Message:
        """Send a message of any kind, and answer it as it was stored."""
        id_ = uuid4().hex
        return await self._send(id_, kind, payload, to, correlation_id, context)

    async def request(
        self,
        to: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the request is cancelled, not just left
        on_progress: OnProgress | None = None,
        correlation_id: Names = (),
    ) -> Any:
        """Ask a participant something, and answer its result; `RequestFailed` has its error.

        To cancel the wait, or to let `timeout` seconds pass, cancels the request.
        """
        id_ = uuid4().hex
        given = dict(params or {})
        if on_progress is not None:
            given["_meta"] = {**given.get("_meta", {}), "progressToken": id_}
        payload = {"jsonrpc": JSONRPC, "id": id_, "method": method, "params": given}
        kind = str(effective(parse(f"mcp.request.{method}"), payload))
        answer = self._questions.open(id_, on_progress)
        answered = False
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                await self._send(id_, kind, payload, to, correlation_id)
                result = await answer
            answered = True
        except e.FolkmootError:
            answered = True
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            late = e.RequestTimedOut(f"{to} did not answer in time.")
            raise failed(late.as_jsonrpc()) from None
        else:
            return result
        finally:
            self._questions.close(id_)
            if not answered:
                self._cancel(id_, to)

    def _cancel(self, id_: str, to: str) -> None:
        method = CANCELLED
        payload = {"jsonrpc": JSONRPC, "method": method, "params": {"requestId": id_}}
        self._post(f"mcp.notification.{method}", payload, to, id_)

    async def call(
        self,
        to: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `request`
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Call a tool of a participant; `ToolFailed` has the tool's own words."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        answer = await self.request(
            to, TOOLS_CALL, params, timeout=timeout, on_progress=on_progress
        )
        return read_result(answer)

    async def respond(
        self,
        request: Message,
        *,
        result: Any = None,
        error: Mapping[str, Any] | None = None,
    ) -> Message:
        """Answer a request that was made to this program; tools answer by themselves."""
        answer = {"result": result} if error is None else {"error": dict(error)}
        return await self._send(uuid4().hex, *_response(request, answer))

    async def propose(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        to: Names = (),
        reason: str | None = None,
        expires_in: float | None = None,
    ) -> Proposal:
        """Ask others to make a request; `to` names who should be asked, if that matters.

        Whoever decides reads the `reason`.
        """
        id_ = uuid4().hex
        asked = {"jsonrpc": JSONRPC, "method": method, "params": dict(params or {})}
        payload = {**asked, **_given({"reason": reason, "expires_in": expires_in})}
        kind = str(effective(parse(f"mcp.proposal.{method}"), payload))
        ended = self._proposals.open(id_)
        try:
            message = await self._send(id_, kind, payload, to)
        except BaseException:
            self._proposals.close(id_)
            raise
        return Proposal(message, ended)

    async def fulfil(
        self,
        proposal: Message,
        *,
        to: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `request`
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Make the request someone proposed, and answer its result.

        `to` is needed where the proposal leaves open who is to be asked.
        """
        asked = to or (proposal.to[0] if len(proposal.to) == 1 else None)
        if asked is None:
            raise ValueError("The proposal does not name a participant; give one with to=.")
        return await self.request(
            asked,
            proposal.payload["method"],
            proposal.payload.get("params"),
            timeout=timeout,
            on_progress=on_progress,
            correlation_id=proposal.id,
        )

    async def reject(self, proposal: Message | str, reason: str) -> Message:
        """Say no to a proposal of someone else's."""
        about = proposal if isinstance(proposal, str) else proposal.id
        return await self.send("mcpx.reject.proposal", {"reason": reason}, correlation_id=about)

    async def withdraw(self, proposal: Proposal | Message | str) -> Message:
        """Take a proposal of one's own back."""
        about = proposal if isinstance(proposal, str) else proposal.id
        return await self.send("mcpx.withdraw.proposal", {}, correlation_id=about)

    async def grant(self, participant: str, capabilities: Iterable[Any]) -> Message:
        """Give someone capabilities that are one's own; the message's id names the grant."""
        payload = {"recipient": participant, "capabilities": list(capabilities)}
        return await self.send("capability.grant", payload)

    async def revoke(
        self,
        participant: str | None = None,
        capabilities: Iterable[Any] | None = None,
        *,
        grant_id: str | None = None,
    ) -> Message:
        """Revoke rights: all that someone was granted, one grant, or some capabilities."""
        some = None if capabilities is None else list(capabilities)
        payload = {"recipient": participant, "capabilities": some, "grant_id": grant_id}
        return await self.send("capability.revoke", _given(payload))

    async def invite(
        self,
        handle: str | None = None,
        *,
        guest: str | None = None,
        capabilities: Iterable[Any] | None = None,
    ) -> Invitation:
        """Let someone in: an account by its handle, or a guest by the name it will have here.

        A guest may hold capabilities from the start, which must be one's own.
        """
        some = None if capabilities is None else list(capabilities)
        payload = {"handle": handle, "guest": guest, "capabilities": some}
        id_ = uuid4().hex
        answer = self._questions.open(id_, private=True)
        try:
            await self._send(id_, "room.invite", _given(payload))
            return msgspec.convert(await answer, Invitation)
        except msgspec.ValidationError:
            raise e.AnswerInvalid("The hub's invitation cannot be understood.") from None
        finally:
            self._questions.close(id_)

    async def kick(self, participant: str, reason: str | None = None) -> Message:
        """Put someone out, until they are invited again."""
        return await self.send("room.kick", _given({"participant": participant, "reason": reason}))

    async def pause(
        self, participants: Names, reason: str | None = None, *, seconds: float | None = None
    ) -> Message:
        """Let participants begin nothing more, until they are resumed or the time is over."""
        payload = _given({"reason": reason, "timeout_seconds": seconds})
        return await self.send("participant.pause", payload, to=participants)

    async def resume(self, participants: Names = ()) -> Message:
        """Let participants who are paused go on; all of them, where none is named."""
        return await self.send("participant.resume", {}, to=participants)

    async def _begin(self, id_: str, request: Message) -> None:
        await self._send(id_, "mcpx.begin.request", {}, correlation_id=request.id)

    async def _respond(self, request: Message, answer: dict[str, Any]) -> None:
        await self._send(uuid4().hex, *_response(request, answer))

    def _post_response(self, request: Message, answer: dict[str, Any]) -> None:
        kind, payload, to, about = _response(request, answer)
        self._post(kind, payload, to, about)

    async def _tell_progress(self, request: Message, params: dict[str, Any]) -> None:
        method = PROGRESS
        payload = {"jsonrpc": JSONRPC, "method": method, "params": params}
        # Whoever asked may have cancelled by now, which the tool will notice soon enough.
        with suppress(e.FolkmootError):
            await self.send(
                f"mcp.notification.{method}",
                payload,
                to=request.sender,
                correlation_id=request.id,
            )

    async def _send(
        self,
        id_: str,
        kind: str,
        payload: Mapping[str, Any] | None,
        to: Names = (),
        correlation_id: Names = (),
        context: str | None = None,
    ) -> Message:
        members = _members(kind, payload, to, correlation_id, context)
        return await self._outbox.send(id_, members, self.last_seq)

    def _post(self, kind: str, payload: Mapping[str, Any], to: Names, about: Names) -> None:
        members = _members(kind, payload, to, about, None)
        self._outbox.post(uuid4().hex, members, self.last_seq)


def _response(request: Message, answer: dict[str, Any]) -> tuple[str, dict[str, Any], str, str]:
    """The kind, payload, recipient and correlation of an answer."""
    kind = f"mcp.response{request.kind.removeprefix('mcp.request')}"
    payload = {"jsonrpc": JSONRPC, "id": request.payload.get("id"), **answer}
    return kind, payload, request.sender, request.id


def _members(
    kind: str,
    payload: Mapping[str, Any] | None,
    to: Names,
    correlation_id: Names,
    context: str | None,
) -> dict[str, Any]:
    members: dict[str, Any] = {"kind": kind}
    if to:
        members["to"] = _listed(to)
    if correlation_id:
        members["correlation_id"] = _listed(correlation_id)
    if context is not None:
        members["context"] = context
    if payload is not None:
        members["payload"] = dict(payload)
    return members


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _given(members: dict[str, Any]) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


def read_result(answer: Any) -> ToolResult:
    """The result of `tools/call`; what the tool calls an error is raised."""
    told = answer if isinstance(answer, dict) else {}
    content = told.get("content")
    parts = content if isinstance(content, list) else []
    result = ToolResult(
        tuple(part for part in parts if isinstance(part, dict)), told.get("structuredContent")
    )
    if told.get("isError"):
        raise e.ToolFailed(result.text or "The tool failed.", content=result.content)
    return result
