"""The app: a tool that opens it, and the page it is."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from folkmoot.mail import Digest
from folkmoot.tools.account_tools import Nothing
from folkmoot.tools.model import Call, Payload, Tool
from folkmoot.tools.schemas import obj

INBOX_APP = "ui://mmp-inbox"
APP_TYPE = "text/html;profile=mcp-app"
OLD_APP_TYPE = "application/vnd.mcp.app+html"
"""What MMP calls the type of an app; the Apps extension has had another name for it since."""
APP_TYPES = (APP_TYPE, OLD_APP_TYPE)
SHOWN_THREADS = 20
MOST_NAMED = 5
"""Senders that the sentence about a digest names."""


async def open_inbox(call: Call[Nothing]) -> Payload:
    """What the app shows first, and what a client without apps can read out."""
    mail = call.services.mail
    digest = await mail.digest(call.account)
    page = await mail.threads(call.account, limit=SHOWN_THREADS)
    return {
        "resource": INBOX_APP,
        "handle": call.account.handle,
        "message": summary(digest),
        "digest": digest,
        "threads": page.threads,
    }


def summary(digest: Digest) -> str:
    """A digest in one sentence."""
    unread, threads = digest.total_unread, digest.threads_with_unread
    if not unread:
        return "You have no unread messages."
    sentence = (
        f"You have {unread} unread message{'s' if unread > 1 else ''} "
        f"in {threads} thread{'s' if threads > 1 else ''}"
    )
    if digest.recent_senders:
        named = digest.recent_senders[:MOST_NAMED]
        sentence += f", from {', '.join(f'@{handle}' for handle in named)}"
        sentence += " and others" if len(digest.recent_senders) > MOST_NAMED else ""
    return f"{sentence}; {digest.urgent_count} urgent." if digest.urgent_count else f"{sentence}."


@cache
def inbox_page() -> str:
    """The app as one HTML document."""
    return files("folkmoot.tools").joinpath("inbox.html").read_text("utf-8")


APP_TOOLS = (
    Tool(
        name="msg/open_inbox",
        description="Open the interactive inbox UI in your MCP client (requires MCP App support).",
        schema=obj({}),
        arguments=Nothing,
        handler=open_inbox,
        app=INBOX_APP,
        kind="reads",
        others=("threads",),
    ),
)
