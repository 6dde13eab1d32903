"""One HTTP request to `/mcp`: who asks, and how they want to be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.operations.call import Caller

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Scope

    from folkmoot.accounts import Credential
    from folkmoot.core.errors import FolkmootError
    from folkmoot.mcp.server.heads import Head
    from folkmoot.names import NameStyle
    from folkmoot.transports.mcp.sessions import Session

REWRITTEN_KEY: Final = "folkmoot.rewritten"
"""In the scope of a request that is not as its client sent it: its headers may repeat less."""


class Exchange(Struct, kw_only=True, eq=False, weakref=True):
    """What belongs to one request."""

    caller: Caller
    scope: Scope
    head: Head
    """The headers of the request, by one look at them."""
    shown_hash: str = ""
    """The hash of the token that the request shows, valid or not."""
    credential: Credential | None = None
    """What authenticated the caller; None when nobody is."""
    handshake: bool = False
    """Whether the request belongs to the eras that know sessions."""
    token_invalid: bool = False
    """Whether the request, or its session, has a token that is nobody's."""
    suspended: bool = False
    """Whether that is because the token's account is suspended."""
    session: Session | None = None
    subscribed: tuple[str, ...] = ()
    """What its session, if it was adopted for this request, had subscribed to."""
    names: NameStyle = "safe"
    all_tools: bool = False
    search: bool = False
    """Whether the list of tools has only those that find and call the others."""
    ending: FolkmootError | None = None
    """Why it is ended early; None if its client has left, or the hub stops."""

    @property
    def credential_id(self) -> str:
        """The id of what authenticated the caller; empty when nobody is."""
        return "" if self.credential is None else self.credential.id

    def uses(self, credential_id: str) -> bool:
        """Whether it came in with a credential, or with one that ends with it."""
        used = self.credential
        return used is not None and credential_id in (used.id, used.parent_id)

    @property
    def leaving(self) -> asyncio.Event:
        """Set when the client has left, or nobody waits for an answer any more."""
        return self.caller.leaving

    @property
    def rewritten(self) -> bool:
        """Whether the request is not as its client sent it."""
        return REWRITTEN_KEY in self.scope

    @property
    def listens(self) -> bool:
        """Whether it is the stream of a session, which answers nothing by itself."""
        return bool(self.scope["method"] == "GET")
