"""One's own lines of the audit log: what was done with which token. Operators read all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from folkmoot.operations.declare import Topic, get
from folkmoot.operations.row import Absent, PageLimit, describe, view_of

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

account = Topic(scope="account.read")


class ActivityLine(Struct, frozen=True, kw_only=True):
    """Something that was done by an account, or refused to it."""

    id: int
    at: float
    action: str
    about: str
    outcome: str | None
    room: str | None
    server: str | None
    credential_id: str | None
    seconds: float | None


class Activity(Struct, frozen=True):
    """What an account did, the newest first."""

    lines: list[ActivityLine]


@account.reads(
    "folkmoot/activity",
    get(
        "/v1/me/activity",
        "readActivity",
        "Read your activity",
        answer="The lines, the newest first.",
    ),
    tool=Absent("People look at it to see what their programs did."),
    commands=Absent("It is for programs that show it; operators have 'folkmoot audit'."),
)
async def activity(
    call: Call,
    *,
    limit: PageLimit = 100,
    before: Annotated[
        int, describe("Only lines older than the one with this id: the last you have.", ge=1)
    ]
    | None = None,
    credential: Annotated[str, "Only what was done with the token that has this id."] | None = None,
) -> Activity:
    """Read your own lines of the audit log, the newest first: calls of servers behind the hub, what
    you were refused, what you did in rooms and to your tokens, and with which token. What an
    operator did about you is not among them.
    """
    found = await call.services.accounts.activity(
        call.account, limit, before=before, credential_id=credential
    )
    return Activity([view_of(ActivityLine, one) for one in found])
