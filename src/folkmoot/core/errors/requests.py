"""What is wrong with an HTTP request."""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import INVALID_PARAMS, INVALID_REQUEST, FolkmootError


class RequestError(FolkmootError, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST):
    """The HTTP request cannot be served."""


class NotFound(RequestError, code="not_found", http=404):
    """Nothing is served at this path."""


class MethodNotAllowed(RequestError, code="method_not_allowed", http=405):
    """The path does not take this method; `Allow` names those it takes."""


class BodyTooLarge(RequestError, code="body_too_large", http=413, close=CloseCode.TOO_BIG):
    """The request's body has more bytes, more JSON values, or more tiny chunks than the limit
    allows.
    """


class HeadTooLarge(RequestError, code="head_too_large", http=431):
    """The request's head has more bytes, or more headers, than the limit allows."""


class HubFull(RequestError, code="hub_full", http=503, close=CloseCode.RESTARTING):
    """The hub is serving as much as it can; `retry_after` says when to try again."""


class ConnectionsExceeded(RequestError, code="connections_exceeded", http=429):
    """One account, or one address without an account, has too many connections."""


class BodyTimeout(RequestError, code="body_timeout", http=408):
    """The rest of the request's body did not arrive in time."""


class MediaTypeUnsupported(RequestError, code="media_type_unsupported", http=415):
    """The request's body is not of a type that the address reads."""


class HostNotAllowed(RequestError, code="host_not_allowed", http=421, close=CloseCode.NOT_ALLOWED):
    """The request is addressed to a host name this hub does not answer to."""


class OriginNotAllowed(
    RequestError, code="origin_not_allowed", http=403, close=CloseCode.NOT_ALLOWED
):
    """A web page of another origin sent the request."""


class UpgradeRequired(RequestError, code="upgrade_required", http=426):
    """The address is for WebSockets, of the version that the answer names."""


class HandshakeInvalid(RequestError, code="handshake_invalid"):
    """The request asks for a WebSocket in a way that cannot be answered."""


class HubStopping(RequestError, code="hub_stopping", http=503, close=CloseCode.RESTARTING):
    """The hub is stopping and could not finish the request in time."""


class NodeDraining(RequestError, code="node_draining", http=503, close=CloseCode.RESTARTING):
    """The node is about to be stopped, and other nodes have its rooms."""


class QueryInvalid(RequestError, code="query_invalid"):
    """A query parameter has a value the address does not take."""


class TokensDiffer(RequestError, code="tokens_differ"):
    """The request carries two different tokens, one in its URL and one in its header."""


class NotAcceptable(RequestError, code="not_acceptable", http=406):
    """The client takes none of the forms an answer can have."""


class VersionUnsupported(RequestError, code="version_unsupported", jsonrpc=-32022):
    """The request names a version of MCP not spoken here; `supported` names those that are."""


class ParamsInvalid(RequestError, code="params_invalid", jsonrpc=INVALID_PARAMS):
    """The params of a request are not what its method takes; the message names the member."""


class VersionMissing(RequestError, code="version_missing", jsonrpc=INVALID_PARAMS):
    """A request of the stateless era does not say in its `_meta` which version it speaks."""


class HeaderMismatch(RequestError, code="header_mismatch", jsonrpc=-32020):
    """A header that repeats part of the message is missing, occurs twice, or does not match."""


class SessionRequired(RequestError, code="session_required"):
    """The request names no session, and is not one that opens a session."""


class EventUnknown(RequestError, code="event_unknown"):
    """The stream to resume is no longer kept, or never existed."""


class SessionNotFound(RequestError, code="session_not_found", http=404):
    """The session has ended, never existed, or was opened with another token."""


class StreamExists(RequestError, code="stream_exists", http=409):
    """The session has an event stream already."""


class TooManySessions(RequestError, code="too_many_sessions", http=429):
    """Too many sessions without an account are open from one address."""
