"""The path of every message, and the only place where its steps are put in order.

    authenticate → envelope → interceptors → policy → service → commit → events

A `Pipeline` has the steps of one way in as values, and whatever comes in is taken through one. Who
asks is made out first and stands in the envelope, so that rules can name them. Policy judges what
the interceptors left of a message, so that no rewrite slips past it. The service commits, and then
publishes what is committed. Where a step is empty, the value given for it says so:

    what comes in                interceptors     policy                 service
    a message at `/mcp`          rules, tape      none here: see below   the MCP server
    a tool call or request there none: seen       the hub's rights       a tool, or a backend
    a form of a page             rules            the hub's rights       a tool
    a REST call, a WebSocket     rules            the hub's rights       what rooms offer
    a message in a room          rules            none here: see below   the room
    its request to a backend     none: seen       the hub's rights       the backend
    an approved call             none: seen       the hub's rights       the backend
    a message through a proxy    rules, tape      none: no accounts      the other end

Two services ask policy themselves, because only they know what is to be judged. A message at `/mcp`
is in its client's era and spelling; once the MCP server has read it, what it asks for enters here
again. What someone may say in a room depends on what was said before, so the room judges a message
when its turn comes. Neither can be slipped past by a rewrite: the MCP server reads what the
interceptors left, and a room's message cannot be rewritten.

What someone does in a room is shown to interceptors twice on every way in: as the call of the tool
that does it, such as `room/say`, and as the message that comes of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.kinds import Kind
from folkmoot.core.policy import ALLOWED, Principal, Verdict, decide
from folkmoot.core.ports import Admitted, Clock, Service
from folkmoot.core.session import ANONYMOUS, SessionContext
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import UNKNOWN, TransportContext
from folkmoot.core.verdict import Block, Mock
from folkmoot.proxy.chain import Chain, Ruling, settled

NO_RIGHTS: Final = Rights()
"""Given where no policy asks for rights."""

Perform: TypeAlias = Callable[[Admitted], Awaitable[Any]]
"""The service: does what a message asks, and answers once that is committed."""
Policy: TypeAlias = Callable[[Principal, Rights, Any], Verdict]
"""Judges a message by who sent it and what they may do."""
Stopped: TypeAlias = Callable[[MessageEnvelope[Any], Ruling], Any]
"""Answers a message that an interceptor stopped, or raises its error."""
Refused: TypeAlias = Callable[[MessageEnvelope[Any], Principal, e.PolicyError], e.FolkmootError]
"""Notes what policy refused; answers what its sender is told."""
Defer: TypeAlias = Callable[[Callable[[], Awaitable[Any]]], e.FolkmootError | None]
"""Given the rest of a waiting message's way, to be run beside the others; an error refuses it."""


def refuse(_: MessageEnvelope[Any], ruling: Ruling) -> NoReturn:
    """Tell the sender of a message that it was stopped."""
    # An interceptor may give the same error each time: every raise would add frames to it.
    raise error_of(ruling).with_traceback(None)


class Pipeline(msgspec.Struct, frozen=True):
    """Takes messages from one way in to their service.

    The cost of a message is that of its own steps; nothing here grows with what is stored.
    """

    perform: Perform
    interceptors: Chain | None = None
    policy: Policy | None = decide
    stopped: Stopped = refuse
    refused: Refused | None = None

    @classmethod
    def to(cls, service: Service, interceptors: Chain | None = None) -> Pipeline:
        """The way to a service that notes what policy refuses."""
        return cls(service.perform, interceptors, refused=service.refused)

    async def run(
        self,
        envelope: MessageEnvelope[Any],
        principal: Principal,
        rights: Rights = NO_RIGHTS,
        defer: Defer | None = None,
        ruling: Ruling | None = None,
    ) -> Any:
        """Carry one message through; a refusal at any step is raised as its error.

        With `defer`, a message that an interceptor has waiting is left to it, and None is answered;
        `ruling` is the interceptors' last word about one that has waited.
        """
        chain = self.interceptors
        if chain is not None and chain.interceptors and ruling is None:
            ruling = await (chain.run if defer is None else chain.judge)(envelope)
            if defer is not None and ruling.waits:
                full = defer(partial(self._go_on, envelope, principal, rights, ruling))
                if full is None:
                    return None
                ruling = msgspec.structs.replace(ruling, verdict=Block(full))
        if ruling is not None:
            if self.policy is not None:
                ruling = checked(envelope, ruling)
            if isinstance(ruling.verdict, Block | Mock):
                return self.stopped(envelope, ruling)
            envelope = ruling.envelope
        kind = None if self.policy is None else self.judge(envelope, principal, rights)
        return await self.perform(Admitted(envelope, principal, rights, kind, ruling))

    async def _go_on(
        self, envelope: MessageEnvelope[Any], principal: Principal, rights: Rights, ruling: Ruling
    ) -> Any:
        """The rest of the way of a message that waits."""
        assert self.interceptors is not None  # noqa: S101 - one of them has it wait
        last = await self.interceptors.settle(ruling)
        return await self.run(envelope, principal, rights, None, last)

    def judge(
        self, envelope: MessageEnvelope[Any], principal: Principal, rights: Rights = NO_RIGHTS
    ) -> Kind | None:
        """The effective kind of a message that policy allows; a refusal is noted and raised."""
        assert self.policy is not None  # noqa: S101 - only what policy judged is judged again
        verdict = self.policy(principal, rights, envelope.message)
        kind, error = verdict.kind, verdict.error
        if error is None:
            return kind
        # An error holds the frame that it was raised in, which must not hold the error.
        del verdict
        try:
            raise error if self.refused is None else self.refused(envelope, principal, error)
        finally:
            del error


def checked(envelope: MessageEnvelope[Any], ruling: Ruling) -> Ruling:
    """A ruling whose message is what policy will see, also if it was changed in place."""
    if isinstance(ruling.verdict, Block | Mock):
        return ruling
    try:
        left = settled(envelope.message, ruling.envelope.message)
    except e.FolkmootError as error:
        return msgspec.structs.replace(ruling, verdict=Block(error))
    return msgspec.structs.replace(ruling, envelope=envelope.with_message(left))


def enveloped(
    clock: Clock,
    message: Any,
    caller: Principal,
    *,
    session: SessionContext = ANONYMOUS,
    transport: TransportContext = UNKNOWN,
    extensions: dict[str, Any] | None = None,
) -> MessageEnvelope[Any]:
    """The envelope of a message that comes in now, from someone who was made out."""
    now = clock.monotonic()
    context = MessageContext(
        TimingContext(now, clock.now(), now),
        MessageDirection.CLIENT_TO_SERVER,
        session,
        transport,
        extensions or {},
        caller,
    )
    return MessageEnvelope(message, context)


def allow_all(_: Principal, __: Rights, ___: Any) -> Verdict:
    """The policy of rooms: each room judges its own messages, in their order."""
    return ALLOWED


def error_of(ruling: Ruling) -> e.FolkmootError:
    """What the sender of a message is told that was stopped; nobody answers in our place."""
    if isinstance(ruling.verdict, Block):
        return ruling.verdict.error
    return e.BlockedByInterceptor(f"{ruling.by} answers in the hub's place, which it may not.")
