"""Any program asks a person before it does something; the person sees exactly what it would do.

What one's own programs ask, nothing but oneself decides: in a browser, showing that one is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Struct

from folkmoot.asks.limits import (
    DEFAULT_SECONDS,
    MAX_ARGUMENTS_BYTES,
    MAX_REASON,
    MAX_SECONDS,
    MAX_TOOL,
    MAX_WHY,
    MIN_SECONDS,
)
from folkmoot.asks.machine import AskState, Wish
from folkmoot.core import errors as e
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.declare import Topic, delete, get, post
from folkmoot.operations.presence import INSECURE, check_token, is_present, is_secure
from folkmoot.operations.rate_limits import by_user, when_missed
from folkmoot.operations.row import Absent, AuditSpec, OperationLimit, describe, view_of
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import StoredJson

if TYPE_CHECKING:
    from folkmoot.asks.service import ShownAsk
    from folkmoot.operations.call import Call

PATH: Final = "/v1/asks"
MAX_WAIT_SECONDS: Final = 55
asking = Topic(scope="ask", needs=("asks",))
AskId = Annotated[str, describe("The id of the ask.", min_length=1, max_length=64)]


class AskedCall(Struct, frozen=True, kw_only=True):
    """What a program wants to do, and what became of it."""

    id: str
    state: Annotated[
        AskState,
        "`open` until it is `approved`, `rejected` or `withdrawn`, or has `expired`. What the hub "
        "does itself is `running` once it is approved, then `done`, or `unknown` if it was lost.",
    ]
    tool: Annotated[str, "What it would call."]
    arguments: Annotated[StoredJson, "With which arguments, exactly."]
    why: Annotated[str, "Why, in the words of the program."]
    by: Annotated[str, "Whose program it is."]
    by_type: Annotated[str, "Whether that account is a `person` or an `agent`."]
    client: Annotated[str, "What the token is called that the program came with."]
    to: Annotated[str, "Who is to decide."]
    digest: Annotated[str, "Stands for all of this: with another one, it is another ask."]
    created_at: str
    expires_at: Annotated[str, "Until when it can be decided."]
    rule: Annotated[
        str,
        "The rule of the hub that asks; empty if a program asks. What a rule asks about, the hub "
        "does once it is approved.",
    ]
    person: Annotated[
        bool, "Whether only a person in a browser who shows that they are there can decide."
    ]
    decided_at: str | None
    presence: Annotated[
        str | None,
        "How whoever decided showed that they are there: by `passkey`, by `token`, or not at all.",
    ]
    reason: Annotated[str | None, "What they said about it."]
    receipt: Annotated[
        str | None,
        "The decision, signed by the hub: a JWS that `/.well-known/jwks.json` has the keys for.",
    ]
    result: Annotated[
        StoredJson | None, "What the tool answered, for whoever asked; null if there is nothing."
    ]


def view(call: Call, shown: ShownAsk) -> AskedCall:
    """An ask as it stands now."""
    ask = shown.ask
    return view_of(
        AskedCall,
        ask,
        state=ask.standing(call.services.clock.now()),
        arguments=msgspec.Raw(msgspec.json.encode(ask.told["arguments"])),
        by=shown.by,
        by_type=shown.by_type,
        to=shown.to,
        person=bool(ask.person) or ask.asker_id == ask.decider_id,
        result=None
        if ask.result is None or ask.asker_id != call.account.id
        else msgspec.Raw(ask.result),
        created_at=moment(ask.at),
        expires_at=moment(ask.until),
        decided_at=None if ask.decided_at is None else moment(ask.decided_at),
    )


class Asked(Struct, frozen=True, kw_only=True):
    """An ask that was made."""

    status: Literal["asked"] = "asked"
    ask_id: str
    expires_at: str
    url: Annotated[str, "Where the person decides."]
    message: str


@asking.adds(
    "ask/create",
    post(
        PATH,
        "createAsk",
        "Ask someone before you do something",
        "They see the tool, the arguments and why, and approve or reject it; `GET /v1/asks/{ask}` "
        "with `wait` tells what came of it. Without `to`, you ask the person whose account it is.",
        status=201,
        answer="The ask.",
        location=PATH + "/{ask_id}",
        example={"tool": "shell", "arguments": {"command": "make deploy"}, "why": "It is tested."},
    ),
    reaches_others=True,
    limits=(OperationLimit("handle", by_user, when_missed),),
    errors=(e.UserNotFound, e.CannotSend, e.TooManyAsks),
    commands=("asks create",),
)
async def create(
    call: Call,
    tool: Annotated[
        str,
        describe("What you want to call: the name of a tool.", min_length=1, max_length=MAX_TOOL),
    ],
    *,
    arguments: Annotated[dict[str, Any], "The arguments of that call, all of them."] | None = None,
    why: Annotated[str, describe("Why, for the person who decides.", max_length=MAX_WHY)] = "",
    to: Annotated[str, "The handle of the person who is to decide. If omitted, your own user."]
    | None = None,
    expires_in: Annotated[
        int,
        describe("Seconds until it ends by itself. Default 3600.", ge=MIN_SECONDS, le=MAX_SECONDS),
    ] = DEFAULT_SECONDS,
) -> Asked:
    """Ask a person before you do something that you may not do by yourself. They see the tool, the
    arguments and why, and approve or reject it. Then call ask/result with wait, and do it only if
    the state is approved, and exactly as you asked.
    """
    given = arguments or {}
    if len(msgspec.json.encode(given)) > MAX_ARGUMENTS_BYTES:
        most = MAX_ARGUMENTS_BYTES // 1024
        raise e.ArgumentInvalid(f"arguments has more than {most} KiB.", field="arguments")
    services, caller = call.services, call.caller
    came_with = await services.accounts.authentication.by_id(caller.credential_id)
    made = await services.asks.make(
        call.account,
        "" if came_with is None else came_with.credential.lasting_id,
        "" if came_with is None else came_with.credential.label,
        call.account.handle if to is None else to,
        Wish(tool=tool, arguments=given, why=why, until=services.clock.now() + expires_in),
    )
    ask = made.ask
    return Asked(
        ask_id=ask.id,
        expires_at=moment(ask.until),
        url=f"{services.url}/decisions",
        message=f"@{made.to} was asked. ask/result with wait tells what they decide. Do not do it "
        "before they approve it.",
    )


@asking.reads(
    "ask/result",
    get(
        PATH + "/{ask}",
        "getAsk",
        "Read one ask and what became of it",
        answer="The ask.",
    ),
    others_words=("why", "reason", "arguments"),
    waits="wait",
    errors=(e.AskUnknown,),
    commands=("asks show",),
)
async def result(
    call: Call,
    ask: AskId,
    *,
    wait: Annotated[
        int,
        describe(
            "Wait up to this many seconds for the decision instead of polling. Default 0, max 55.",
            ge=0,
            le=MAX_WAIT_SECONDS,
        ),
    ] = 0,
) -> AskedCall:
    """Tell what became of an ask: open, approved, rejected, withdrawn or expired; of a call that
    the hub makes once it is approved: running, done with its result, or unknown. With wait, it
    returns as soon as that is known.
    """
    asks = call.services.asks
    if wait:
        shown = await wait_unless_left(call.caller, asks.wait(call.account, ask, wait))
        if shown is not None:
            return view(call, shown)
    return view(call, await asks.find(call.account, ask))


async def check_decider(call: Call, operation: str) -> None:
    """Refuse programs of the account that asks, and where a rule wants a person: they show that
    they are there.
    """
    ask = (await call.services.asks.find(call.account, call.arguments.ask)).ask
    if ask.person or ask.asker_id == ask.decider_id == call.account.id:
        await check_person(call, operation, ask.credential_id)


async def check_person(call: Call, operation: str, asked_with: str) -> None:
    """Refuse whoever is not in a browser, with a passkey or a token that did not ask itself."""
    given, caller = call.arguments, call.caller
    came_with = await call.services.accounts.authentication.by_id(caller.credential_id)
    if came_with is None or came_with.credential.kind != "browser":
        where = f"{call.services.url}/decisions"
        raise e.PersonNeeded(f"This is for you yourself: decide it at {where}, in your browser.")
    if not is_secure(caller.base_url):
        raise e.CapabilityDenied(INSECURE)
    if not await is_present(call, operation, given.ticket, given.passkey):
        confirmed = await check_token(call)
        if confirmed.id == asked_with:
            raise e.PersonNeeded("This token asked for it. Give another one, or use a passkey.")


@asking.with_(scope="decide").changes(
    "ask/decide",
    post(
        PATH + "/{ask}/approve",
        "approveAsk",
        "Approve what a program asks",
        "The program that asked is told, and does it. What your own programs ask is decided in a "
        "browser alone, with your passkey.",
        fixed={"verdict": "approve"},
        answer="The ask.",
    ),
    post(
        PATH + "/{ask}/reject",
        "rejectAsk",
        "Reject what a program asks",
        "The program reads the reason.",
        fixed={"verdict": "reject"},
        example={"reason": "Not before Monday."},
        answer="The ask.",
    ),
    present=check_decider,
    others_words=("why", "arguments"),
    errors=(e.AskUnknown, e.AskClosed, e.AskNotYours, e.AskOutdated, e.PersonNeeded),
    audit=AuditSpec("ask.decided", "ask"),
    commands=("asks approve", "asks reject"),
)
async def decide(
    call: Call,
    ask: AskId,
    verdict: Annotated[Literal["approve", "reject"], "What you decide."],
    *,
    reason: Annotated[
        str, describe("What the program is to know about it.", max_length=MAX_REASON)
    ] = "",
) -> AskedCall:
    """Approve or reject what a program or a rule asks your user, exactly as they told you to, once
    they have seen the tool and its arguments. Whoever comes first has decided. What your user's own
    programs ask, and what needs them in person, they decide in a browser: the refusal has the link.
    """
    given = call.arguments
    presence = "passkey" if given.ticket else "token" if given.token else None
    ended = await call.services.asks.end(
        call.account,
        ask,
        "approved" if verdict == "approve" else "rejected",
        presence=presence,
        reason=reason or None,
    )
    return view(call, ended)


@asking.changes(
    "ask/withdraw",
    delete(PATH + "/{ask}", "withdrawAsk", "Withdraw what you asked", answer="The ask."),
    reaches_others=True,
    errors=(e.AskUnknown, e.AskClosed, e.AskNotYours),
    commands=Absent("A program withdraws what it asked; a person rejects it."),
)
async def withdraw(call: Call, ask: AskId) -> AskedCall:
    """Take back what you asked, if you will not do it after all."""
    return view(call, await call.services.asks.end(call.account, ask, "withdrawn"))
