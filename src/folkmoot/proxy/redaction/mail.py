"""Mail: which calls carry it, and under which names its words stand."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.entity import Entity

if TYPE_CHECKING:
    from folkmoot.core.message import Request

SHOWN: Final = {
    tool: frozenset(names.split())
    for tool, names in {
        "register": "handle client_public_key account_type",
        "recover": "handle",
        "whoami": "",
        "set_profile": "display_name bio privacy status client_public_key payload_formats",
        "change_handle": "new_handle",
        "delete_account": "confirm",
        "send": "to priority reply_to idempotency_key",
        "inbox": "thread_id limit before cursor peek wait",
        "reply": "message_id priority idempotency_key",
        "delete_message": "message_id",
        "threads": "state limit cursor",
        "thread": "thread_id limit cursor peek",
        "digest": "",
        "delete_thread": "thread_id confirm",
        "mark_read": "thread_id message_ids",
        "archive": "thread_id undo",
        "star": "thread_id undo",
        "mute": "thread_id undo",
        "contacts": "limit cursor",
        "add_contact": "handle nickname",
        "remove_contact": "handle",
        "lookup": "handle",
        "search_users": "query",
        "block": "handle action",
        "blocks": "limit cursor",
        "invite": "",
        "open_inbox": "",
    }.items()
}
"""The arguments of each tool of mail in which nobody writes to anybody. Any other may be mail."""
MAIL_TOOL: Final = re.compile(
    r"(?:^|[^a-z0-9_]|__|folkmoot_)msg[/_.-](?P<tool>\w*)"
    rf"|(?:^|[^a-z0-9])msg[/_.-]?(?P<known>{'|'.join(sorted(SHOWN, reverse=True))})",
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
"""What is said in a call, as the tools that are known name it."""

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


class AllBut(Entity):
    """The names under which mail's words stand: all but some."""

    shown: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return name not in self.shown


ALL: Final = AllBut(frozenset())
Names = AbstractSet[str] | AllBut


@lru_cache(maxsize=1024)
def _tool(name: str) -> str | None:
    """The tool of mail that a name means, if it means one."""
    match = MAIL_TOOL.search(name)
    return None if match is None else (match["tool"] or match["known"] or "").lower()


def called(value: dict[str, Any]) -> str | None:
    """The tool of mail that an object is a call of, wherever it stands."""
    if ASKING.isdisjoint(value):
        return None
    names = (value.get(each) for each in NAMING)
    tools = (_tool(name) for name in names if isinstance(name, str))
    return next((tool for tool in tools if tool is not None), None)


def words_in_call(tool: str) -> Names:
    """The arguments of a call of mail that are somebody's words, or may be."""
    return AllBut(SHOWN[tool]) if tool in SHOWN else ALL


def is_mail(value: dict[str, Any]) -> bool:
    """Whether an object is a message or a thread."""
    return any(sign in value for sign in SIGNS)


def words_in_answer(request: Request | None) -> Names:
    """The members of an answer that are somebody's words; none if mail was not asked for."""
    params = None if request is None else request.params
    if not isinstance(params, dict):
        return frozenset()
    uri = params.get("uri")
    if isinstance(uri, str) and uri[: len(MAIL_ADDRESS)].lower() == MAIL_ADDRESS:
        return RESULTS
    name, inner = params.get("name"), params.get("arguments")
    tool = _tool(name) if isinstance(name, str) else None
    if tool is None and isinstance(inner, dict):
        tool = called(inner)
    if tool is None:
        return frozenset()
    return RESULTS if tool in SHOWN else ALL
