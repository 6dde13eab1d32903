"""The names of MCP in both eras, spelled here alone, and how messages are read and written.

What comes from either side is only JSON: nothing here trusts a member to have the type it should.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    Glimpse,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    is_message_id,
)
from folkmoot.core.session import FIRST_STATELESS, KNOWN_VERSIONS, Era, ProtocolVersion

STATELESS_VERSION: Final = FIRST_STATELESS
"""The version we speak with a server of the stateless era."""
HANDSHAKE_VERSION: Final = "2025-11-25"
"""The version we offer a server of the handshake era."""
ASSUMED_VERSION: Final = "2025-03-26"
"""What a client speaks over HTTP that does not say, as the specification has it."""
HANDSHAKE_VERSIONS: Final = frozenset(
    version for version in KNOWN_VERSIONS if ProtocolVersion(version).era is Era.HANDSHAKE
)

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
PING: Final = "ping"
DISCOVER: Final = "server/discover"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
PROMPTS_LIST: Final = "prompts/list"
PROMPTS_GET: Final = "prompts/get"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCES_LIST: Final = "resources/list"
TEMPLATES_LIST: Final = "resources/templates/list"
RESOURCES_READ: Final = "resources/read"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
UPDATED: Final = "notifications/resources/updated"
COMPLETION: Final = "completion/complete"
SET_LEVEL: Final = "logging/setLevel"
LOGGED: Final = "notifications/message"
PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
ELICIT: Final = "elicitation/create"
ELICITED: Final = "notifications/elicitation/complete"
SAMPLE: Final = "sampling/createMessage"
ROOTS_LIST: Final = "roots/list"
ROOTS_CHANGED: Final = "notifications/roots/list_changed"
TASKS_GET: Final = "tasks/get"
TASKS_LIST: Final = "tasks/list"
TASKS_RESULT: Final = "tasks/result"
TASKS_UPDATE: Final = "tasks/update"
TASKS_CANCEL: Final = "tasks/cancel"
TASK_STATUS: Final = "notifications/tasks/status"
TASK_CHANGED: Final = "notifications/tasks"
"""What the stateless era calls the same, with all that `tasks/get` tells."""

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"
PARAM_HEADERS: Final = "mcp-param-"
"""How the headers begin that repeat an argument of a call."""
EVENT_ID_HEADER: Final = "last-event-id"
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
ACCEPT_BOTH: Final = f"{JSON}, {EVENT_STREAM}"
"""What a client says that it accepts in answer to a POST."""

PROTOCOL_KEYS: Final = "io.modelcontextprotocol/"
"""How the keys of a `_meta` begin that belong to the protocol."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
REFUSED_KEY: Final = "folkmoot/refused"
"""In the `_meta` of an acknowledgement: why each resource is not announced, as JSON-RPC errors."""
REQUEST_KEYS: Final = frozenset((VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, LEVEL_KEY))
"""What every request of the stateless era may carry in its `_meta`, and no other does."""
APPS_EXTENSION: Final = "io.modelcontextprotocol/ui"
TOKEN_KEY: Final = "progressToken"  # noqa: S105 - it names a request

CHANGES: Final = {
    TOOLS_CHANGED: ("tools", "toolsListChanged"),
    PROMPTS_CHANGED: ("prompts", "promptsListChanged"),
    RESOURCES_CHANGED: ("resources", "resourcesListChanged"),
}
"""Each notice of a changed list: the capability it belongs to, and its name in a filter."""
URIS: Final = "resourceSubscriptions"
TASK_IDS: Final = "taskIds"

ASKING: Final = frozenset((TOOLS_CALL, PROMPTS_GET, RESOURCES_READ, TASKS_RESULT))
"""The requests during which a server may want input; that of a task is handshake servers' alone."""
CACHEABLE: Final = frozenset(
    (PROMPTS_LIST, RESOURCES_LIST, RESOURCES_READ, TEMPLATES_LIST, TOOLS_LIST)
)
"""The requests whose results must say in the stateless era how long they may be kept."""
NEEDED: Final = {
    ELICIT: "elicitation",
    SAMPLE: "sampling",
    ROOTS_LIST: "roots",
}
"""What a server may ask of a client, and the capability the client must have declared."""

LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

RESULT_TYPE: Final = "resultType"
COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"
AS_TASK: Final = "task"
"""What a result says of itself that is a task, and the param that wishes for one before."""
REQUEST_STATE: Final = "requestState"
UNCACHED: Final = {RESULT_TYPE: COMPLETE, "ttlMs": 0, "cacheScope": "private"}
"""What the stateless era adds to a result that nobody is to keep."""

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
CAPABILITY_MISSING: Final = -32021
VERSION_UNSUPPORTED: Final = -32022

MOST_OPEN: Final = 1024
"""Requests of a conversation that may be open at once; more are refused."""
READABLE: Final = 1024 * 1024
"""A longer request that is not valid is not searched for its id."""


def is_stateless(version: Any) -> bool:
    """Whether a version, if it is one at all, belongs to the stateless era."""
    return type(version) is str and ProtocolVersion(version).era is Era.STATELESS


def members_of(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if type(value) is dict else {}


def strings_of(value: Any) -> list[str]:
    """The strings of a list, if it is one."""
    return [item for item in value if type(item) is str] if type(value) is list else []


def level_of(level: Any) -> int | None:
    """The place of a log level among all of them."""
    return LEVELS.index(level) if level in LEVELS else None


def params_of(message: Request | Notification) -> dict[str, Any]:
    """The named params of a call."""
    return members_of(message.params)


def meta_of(message: Request | Notification) -> dict[str, Any]:
    """The `_meta` of a call."""
    params = message.params
    meta = params.get("_meta") if type(params) is dict else None
    return meta if type(meta) is dict else {}


def request_meta(client: Any, capabilities: Any, level: str | None = None) -> dict[str, Any]:
    """What a request of the stateless era says of its client in its `_meta`."""
    meta = {VERSION_KEY: STATELESS_VERSION, CLIENT_KEY: client, CAPABILITIES_KEY: capabilities}
    if level is not None:
        meta[LEVEL_KEY] = level
    return meta


def speaks_stateless(message: Request) -> bool:
    """Whether a request can only come from a client of the stateless era."""
    return message.method == DISCOVER or VERSION_KEY in meta_of(message)


def error_answer(
    message_id: MessageId | None, code: int, message: str, data: Any = msgspec.UNSET
) -> Response:
    """An error in answer to a request."""
    return Response(id=message_id, error=ErrorObject(code, message, data))


def refusal(message_id: MessageId | None, error: e.FolkmootError) -> Response:
    """The answer to a request that cannot be served."""
    told = error.as_jsonrpc()
    return error_answer(message_id, told["code"], told["message"], told["data"])


def cancellation(message_id: MessageId, reason: str) -> Notification:
    """The notice that the answer to a request is not wanted any more."""
    return Notification(method=CANCELLED, params={"requestId": message_id, "reason": reason})


def cancelled_id(message: ProtocolMessage) -> MessageId | None:
    """The id of the request that a `notifications/cancelled` names."""
    if type(message) is not Notification or message.method != CANCELLED:
        return None
    found = params_of(message).get("requestId")
    return found if is_message_id(found) else None


def readable_id(raw: bytes) -> MessageId | None:
    """The id of the request that some bytes were meant to be, if that can be read."""
    return _id_in(raw, _asked, asks=True) if len(raw) <= READABLE else None


def answered_id(raw: bytes) -> MessageId | None:
    """The id of the request that some bytes were meant to answer, if that can be read."""
    return _id_in(raw, _answered, asks=False)


def _id_in(raw: bytes, glimpse: Glimpse, *, asks: bool) -> MessageId | None:
    try:
        head = _decode_head(raw)
    except (ValueError, RecursionError):
        return glimpse.id_of(raw)
    # What has no method may be an answer, whose id is one of the other side's.
    if (head.method is not None) is not asks or not is_message_id(head.id):
        return None
    return head.id  # type: ignore[no-any-return]


class _Head(msgspec.Struct):
    id: Any = None
    method: Any = None


_decode_head = msgspec.json.Decoder(_Head).decode
_asked: Final = Glimpse(b"method", b"params")
_answered: Final = Glimpse(b"result", b"error")


def covers(named: str, uri: str) -> bool:
    """Whether an update of a resource is one of a resource that was named, or of a part of it."""
    return uri == named or uri.startswith(named if named.endswith("/") else named + "/")
