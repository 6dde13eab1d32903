"""The link to a Streamable HTTP server as the hub uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.message import Request
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.mcp.client.http import HttpLink
from folkmoot.mcp.client.mirror import stateless_version

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.mcp.client.target import Answer, HttpTarget

NO_HEADERS: Final = Headers()


class BackendLink(HttpLink):
    """Passes on nothing of a caller's, and wants to know nothing of an answer but its status."""

    def __init__(self, target: HttpTarget, clock: Clock, **options: Any) -> None:
        super().__init__(target, clock, pass_on=False, lets_go=True, **options)
        self._contexts: dict[int, TransportContext] = {}

    async def send(self, message: ProtocolMessage) -> None:
        """Send a message; a request goes straight on, since nothing of a caller's goes with it."""
        if type(message) is Request and not self.closed:
            await self._ask(message, dict(self._own), stateless_version(message))
        else:
            await super().send(message)

    def answer_context(self, method: str, answer: Answer) -> TransportContext:
        """The status of an answer; one object for all that have the same."""
        context = self._contexts.get(answer.status)
        if context is None:
            metadata = HttpMetadata(NO_HEADERS, method, self.target.shown, answer.status)
            context = self._contexts[answer.status] = TransportContext(metadata)
        return context
