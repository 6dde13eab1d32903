"""Mail: which calls carry it, and under which names its words stand."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from folkmoot.core.message import Request

MAIL_TOOL: Final = re.compile(
    r"(?:^|[^a-z0-9_]|__)msg[/_.-]"
    r"|(?:^|[^a-z0-9])msg[/_.-]?(?:send|reply|inbox|thread|digest|open_inbox|invite|register|recover)",
    re.IGNORECASE,
)
"""The tools of mail in every spelling, also behind a namespace."""
MAIL_ADDRESS: Final = "mmp:"
"""How the addresses of mailboxes begin, as resources have them."""
NAMING: Final = ("name", "tool", "tool_name", "toolName", "method")
"""Members that say which tool is called, in a call or in what asks for one."""
ASKING: Final = frozenset({"arguments", "args", "params", "input"})
"""Members that hold what a tool is called with."""

ARGUMENTS: Final = frozenset({"body", "subject", "message", "text", "content", "encrypted_payload"})
"""What is said in a call."""

RESULTS: Final = frozenset(
    {
        "body",
        "subject",
        "preview",
        "snippet",
        "excerpt",
        "last_message_body",
        "last_message_preview",
        "plaintext",
        "ciphertext",
        "encrypted_payload",
    }
)
"""What is said in an answer; its `message` is a sentence of the hub."""

SIGNS: Final = ("encryption_mode", "last_message_body")
"""Members that only mail has, whoever was asked for it."""


@lru_cache(maxsize=1024)
def _is_mails(name: str) -> bool:
    return MAIL_TOOL.search(name) is not None


def is_mail_tool(name: Any) -> bool:
    """Whether a tool is one of mail."""
    return isinstance(name, str) and _is_mails(name)


def is_mail_call(value: dict[str, Any]) -> bool:
    """Whether an object is a call of one of mail's tools, wherever it stands."""
    return not ASKING.isdisjoint(value) and any(is_mail_tool(value.get(each)) for each in NAMING)


def is_mail(value: dict[str, Any]) -> bool:
    """Whether an object is a message or a thread."""
    return any(sign in value for sign in SIGNS)


def asks_for_mail(request: Request | None) -> bool:
    """Whether the answer to a request is mail's."""
    if request is None or not isinstance(request.params, dict):
        return False
    uri = request.params.get("uri")
    if isinstance(uri, str) and uri[: len(MAIL_ADDRESS)].lower() == MAIL_ADDRESS:
        return True
    return is_mail_tool(request.params.get("name"))
