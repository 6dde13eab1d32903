"""The inbox as an app in MCP clients."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.mail.model import Digest, Thread
from folkmoot.operations.declare import Topic
from folkmoot.operations.limits import MAX_SENDERS_NAMED
from folkmoot.operations.row import Absent

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

INBOX_APP: Final = "ui://mmp-inbox"
APP_TYPE: Final = "text/html;profile=mcp-app"
OLD_APP_TYPE: Final = "application/vnd.mcp.app+html"
"""What MMP calls the type of an app; the Apps extension has had another name for it since."""
APP_TYPES: Final = (APP_TYPE, OLD_APP_TYPE)
APP_META: Final = {
    "ui": {
        "csp": {"connectDomains": [], "resourceDomains": []},
        "permissions": {"clipboardWrite": {}},
        "prefersBorder": True,
    }
}
"""What a host may know of the app before it shows it: it loads nothing, and would like to copy."""
IN_CLIENTS: Final = Absent("It opens an app in an MCP client.")


class InboxOpened(Struct, frozen=True):
    """What the app shows first, and what a client without apps can read out."""

    resource: str
    hub: str
    """What the caller reached the hub at: keys that are taken elsewhere name it."""
    handle: str
    message: str
    digest: Digest
    threads: list[Thread]


@Topic().reads(
    "msg/open_inbox",
    IN_CLIENTS,
    scope="mail.read",
    others_words=("threads",),
    app=INBOX_APP,
    commands=IN_CLIENTS,
)
async def open_inbox(call: Call) -> InboxOpened:
    """Open the interactive inbox UI in your MCP client (requires MCP App support)."""
    mail = call.services.mail
    digest = await mail.digest(call.account)
    page = await mail.threads(call.account, limit=20)
    return InboxOpened(
        INBOX_APP,
        call.caller.base_url,
        call.account.handle,
        summary(digest),
        digest,
        page.threads,
    )


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
        named = digest.recent_senders[:MAX_SENDERS_NAMED]
        sentence += f", from {', '.join(f'@{handle}' for handle in named)}"
        sentence += " and others" if len(digest.recent_senders) > MAX_SENDERS_NAMED else ""
    return f"{sentence}; {digest.urgent_count} urgent." if digest.urgent_count else f"{sentence}."


@cache
def inbox_page() -> str:
    """The app as one HTML document, which `make app` builds."""
    return files("folkmoot").joinpath("web", "built", "inbox.html").read_text("utf-8")
