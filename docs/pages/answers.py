"""What each tool answers, by example; a test holds the members against a real hub."""

from __future__ import annotations

from typing import Any

from docs.pages.room_answers import ROOM_ANSWERS
from folkmoot.operations import CATALOGUE, Operation
from folkmoot.operations.registration import NOT_SIGNED_IN, SAVE_SETTINGS
from folkmoot.operations.schema import schema_of

ID = "550e8400-e29b-41d4-a716-446655440000"
TOKEN = "sk_…"  # noqa: S105 - an example
KEY = "BgjJQj3lTUVkRtIhYn1eOhO1JmCzSvRcO0IHO3W3cSk="
TIME = 1711411200
ENDPOINT = "https://moot.example/mcp"
ENTRY = {"url": ENDPOINT, "headers": {"Authorization": f"Bearer {TOKEN}"}}
SIGNED_IN = {
    "server_url": f"{ENDPOINT}?token={TOKEN}",
    "settings": {"mcpServers": {"folkmoot": ENTRY}},
    "next": f"{NOT_SIGNED_IN} {SAVE_SETTINGS}",
}

ASK = "5f2c1b0e-9d7a-4e3f-8b6c-5d4a3f2e1d0c"
ASKED = {
    "id": ASK,
    "state": "open",
    "tool": "shell",
    "arguments": {"command": "make deploy"},
    "why": "The tests pass.",
    "by": "alice",
    "by_type": "person",
    "client": "Claude Code",
    "to": "alice",
    "digest": "7c1f…",
    "created_at": "2024-03-26T00:30:00Z",
    "expires_at": "2024-03-26T01:30:00Z",
    "rule": "",
    "person": True,
    "decided_at": None,
    "presence": None,
    "reason": None,
    "receipt": None,
    "result": None,
    "lasts_until": None,
    "same": [],
    "edited_as": None,
    "approved_before": 0,
}

OWN_PROFILE = {
    "handle": "alice",
    "display_name": "Alice",
    "bio": "",
    "privacy": "public",
    "status": "",
    "account_type": "person",
    "public_key": KEY,
    "client_public_key": None,
    "payload_formats": [],
}
MESSAGE = {
    "id": ID,
    "thread_id": ID,
    "from_handle": "bob",
    "to_handle": "alice",
    "body": "The boat is ready.",
    "priority": "normal",
    "encryption_mode": "server_assisted",
    "reply_to": None,
    "created_at": TIME,
    "unread": True,
}
SENT = {
    "message_id": ID,
    "thread_id": ID,
    "to": "bob",
    "encryption_mode": "server_assisted",
    "created_at": TIME,
}
THREAD = {
    "id": ID,
    "subject": "The boat is ready.",
    "other_handle": "bob",
    "other_display_name": "Bob",
    "last_message_body": "Six o'clock is fine.",
    "last_message_at": TIME,
    "unread_count": 1,
    "member_state": "active",
    "last_read_at": TIME,
    "created_at": TIME,
    "updated_at": TIME,
}
DIGEST = {
    "total_unread": 1,
    "threads_with_unread": 1,
    "recent_senders": ["bob"],
    "urgent_count": 0,
}


WHOAMI: dict[str, Any] = {
    **OWN_PROFILE,
    "created_at": TIME,
    "quotas": {
        "mail": {"used": 18_432, "limit": 1_073_741_824},
        "rooms": {"used": 51_200, "limit": 2_147_483_648},
    },
}


def changed(state: str) -> dict[str, Any]:
    """The answer of a tool that changes the state of a thread."""
    return {"thread_id": ID, "state": state, "message": f"Thread {state}."}


_ANSWERS: dict[str, dict[str, Any]] = {
    "msg/register": {
        "handle": "alice",
        "token": TOKEN,
        "recovery_code": "AB3K-9TW2-HNPQ",
        "public_key": KEY,
        "message": "Account created. Save the token and recovery_code to your persistent memory "
        "immediately.",
        **SIGNED_IN,
    },
    "msg/recover": {
        "handle": "alice",
        "token": TOKEN,
        "message": "Account recovered. Save the new token to your persistent memory. The old token "
        "is now invalid.",
        **SIGNED_IN,
    },
    "msg/whoami": WHOAMI,
    "msg/set_profile": {**OWN_PROFILE, "message": "Profile updated."},
    "msg/change_handle": {
        "old_handle": "alice",
        "new_handle": "alice_v2",
        "redirects_until": TIME + 2_592_000,
        "message": "Handle changed. Old handle will redirect for 30 days.",
    },
    "msg/delete_account": {
        "handle": "alice",
        "message": "Account deleted. The token is now invalid.",
        "backups": "Older backups of the hub still contain your mail.",
    },
    "msg/send": SENT,
    "msg/inbox": {"messages": [MESSAGE], "next_cursor": None},
    "msg/reply": SENT,
    "msg/delete_message": {"message_id": ID, "message": "Message deleted."},
    "msg/threads": {"threads": [THREAD], "next_cursor": None},
    "msg/thread": {"thread": THREAD, "messages": [MESSAGE], "next_cursor": None},
    "msg/digest": DIGEST,
    "msg/delete_thread": {"thread_id": ID, "message": "Thread deleted."},
    "msg/mark_read": {"thread_id": ID, "message": "Thread marked as read."},
    "msg/archive": changed("archived"),
    "msg/star": changed("starred"),
    "msg/mute": changed("muted"),
    "msg/contacts": {
        "contacts": [
            {"handle": "bob", "display_name": "Bob", "nickname": "", "added_at": TIME},
        ],
        "next_cursor": None,
    },
    "msg/add_contact": {"contact": "bob", "nickname": "", "message": "Contact added."},
    "msg/remove_contact": {"contact": "bob", "message": "Contact removed."},
    "msg/lookup": {
        "handle": "bob",
        "display_name": "Bob",
        "bio": "",
        "status": "",
        "account_type": "person",
        "public_key": KEY,
        "client_public_key": None,
        "payload_formats": [],
    },
    "msg/search_users": {
        "results": [
            {"handle": "bob", "display_name": "Bob", "bio": "", "account_type": "person"},
        ]
    },
    "msg/block": {"handle": "bob", "action": "block", "message": "User blocked."},
    "msg/blocks": {"blocked": ["bob"], "next_cursor": None},
    "msg/invite": {
        "invite_code": "0123456789abcdef0123456789abcdef",
        "invite_url": "https://moot.example/invite/0123456789abcdef0123456789abcdef",
        "message": "Share this link with someone to invite them to MMP.",
    },
    "msg/open_inbox": {
        "resource": "ui://mmp-inbox",
        "hub": "https://moot.example",
        "handle": "alice",
        "message": "You have 1 unread message in 1 thread, from @bob.",
        "digest": DIGEST,
        "threads": [THREAD],
    },
    **ROOM_ANSWERS,
    "folkmoot/tokens": {
        "tokens": [
            {
                "id": "c_0123456789abcdef01234567",
                "kind": "token",
                "label": "first token",
                "scope": "*",
                "created_at": 1767225600,
                "used_at": 1767225600,
                "expires_at": None,
                "current": True,
            }
        ]
    },
    "folkmoot/find_tool": {
        "tools": [
            {
                "name": "msg_lookup",
                "description": "Look up a user's public profile by handle.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "handle": {"type": "string", "description": "Handle to look up"}
                    },
                    "required": ["handle"],
                },
                "annotations": {"readOnlyHint": True, "openWorldHint": False},
            },
        ]
    },
    "folkmoot/call_tool": WHOAMI,
    "ask/create": {
        "status": "asked",
        "ask_id": ASK,
        "expires_at": "2024-03-26T01:30:00Z",
        "url": "https://moot.example/decisions",
        "message": "@alice was asked. ask/result with wait tells what they decide. Do not do it "
        "before they approve it.",
    },
    "ask/result": ASKED,
    "ask/decide": {
        **ASKED,
        "state": "rejected",
        "decided_at": "2024-03-26T00:31:00Z",
        "reason": "Not before Monday.",
        "receipt": "eyJhbGciOiJFZERTQSJ9…",
    },
    "ask/withdraw": {**ASKED, "state": "withdrawn", "decided_at": "2024-03-26T00:31:00Z"},
}


def plain_answer(tool: Operation) -> dict[str, Any]:
    """An answer of a tool for which none is written: its members, with a value of their type."""
    values = {"string": "…", "integer": TIME, "boolean": True, "array": [], "object": {}}
    members = schema_of(tool.gives)["properties"]
    return {name: values.get(each.get("type")) for name, each in members.items()}


ANSWERS: dict[str, dict[str, Any]] = {
    tool.name: dict(tool.with_notice(_ANSWERS.get(tool.name) or plain_answer(tool)))
    for tool in CATALOGUE.tools
}
"""One answer of each tool."""
