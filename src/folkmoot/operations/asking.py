"""Any program asks a person before it does something; the person sees exactly what it would do.

What one's own programs ask, nothing but oneself decides: in a browser, showing that one is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from folkmoot.asks.limits import (
    DEFAULT_SECONDS,
    MAX_ARGUMENTS_BYTES,
    MAX_LASTING_SECONDS,
    MAX_REASON,
    MAX_SECONDS,
    MAX_TOOL,
    MAX_WHY,
    MIN_LASTING_SECONDS,
    MIN_SECONDS,
)
from folkmoot.asks.machine import AskState, Lasting, Wish
from folkmoot.core import errors as e
from folkmoot.operations.call import wait_unless_left
from folkmoot.operations.declare import FOR_PAGES, IN_BROWSERS, Topic, delete, get, post
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
MAX_SAME: Final = 100
ArgumentName = Annotated[str, Meta(max_length=256)]
AskId = Annotated[str, describe("The id of the ask.", min_length=1, max_length=64)]


class AskedCall(Struct, frozen=True, kw_only=True):
    """What a program wants to do, and what became of it."""

    id: str
    state: Annotated[
        AskState,
        "`open` until it is `approved`, `rejected` or `withdrawn`, or has `expired`; `edited` if "
        "other arguments were approved, as the ask `edited_as`. What the hub does itself is "
        "`running` once it is approved, then `done`, or `unknown` if it was lost.",
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
    lasts_until: Annotated[
        str | None,
        "Until when its approval is good for other calls too, in which the arguments `same` are "
        "the same; null if for this call alone.",
    ]
    same: list[str]
    edited_as: Annotated[
        str | None, "The ask that took its place: the same with the arguments that were approved."
    ]
    approved_before: Annotated[
        int, "How often the same call was approved before, where this is listed as waiting."
    ] = 0


def view(call: Call, shown: ShownAsk, approved_before: int = 0) -> AskedCall:
    """An ask as it stands now."""
    ask, now = shown.ask, call.services.clock.now()
    return view_of(
        AskedCall,
        ask,
        approved_before=approved_before,
        lasts_until=moment(ask.lasts_until) if ask.lasts_until and ask.lasts(now) else None,
        same=msgspec.json.decode(ask.same) if ask.same and ask.lasts(now) else [],
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


def check_size(arguments: dict[str, Any]) -> None:
    """Refuse more arguments than anyone is shown."""
    if len(msgspec.json.encode(arguments)) > MAX_ARGUMENTS_BYTES:
        most = MAX_ARGUMENTS_BYTES // 1024
        raise e.ArgumentInvalid(f"arguments has more than {most} KiB.", field="arguments")


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
    check_size(given)
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
    """Tell what became of an ask: open, approved, rejected, withdrawn or expired; edited if only
    the arguments of the ask edited_as were approved; of a call that the hub makes once it is
    approved: running, done with its result, or unknown. With wait, it returns as soon as that is
    known.
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


async def check_editor(call: Call, operation: str) -> None:
    """The same, and refuse programs where the hub would call in another's name what they wrote."""
    ask = (await call.services.asks.find(call.account, call.arguments.ask)).ask
    if ask.rule:
        await check_person(call, operation, ask.credential_id)
    else:
        await check_decider(call, operation)


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


async def check_present(call: Call, operation: str) -> None:
    """Refuse whoever does not show that they are there."""
    found = await call.services.asks.find(call.account, call.arguments.ask)
    await check_person(call, operation, found.ask.credential_id)


@asking.with_(scope="decide").changes(
    "ask/approve_longer",
    post(
        PATH + "/{ask}/approve-longer",
        "approveAskLonger",
        "Approve a call and others like it",
        "For what a rule of the hub asks about: until the time is over, calls of the same account "
        "with the same values of some arguments need no decision. It needs you in a browser, with "
        "your passkey.",
        example={"seconds": 86_400, "same": ["path"]},
        answer="The ask.",
    ),
    present=check_present,
    errors=(
        *(e.AskUnknown, e.AskClosed, e.AskNotYours, e.AskOutdated, e.PersonNeeded),
        e.TooManyAsks,
    ),
    audit=AuditSpec("ask.decided", "ask"),
    tool=IN_BROWSERS,
    commands=FOR_PAGES,
)
async def approve_longer(
    call: Call,
    ask: AskId,
    seconds: Annotated[
        int, describe("For how long.", ge=MIN_LASTING_SECONDS, le=MAX_LASTING_SECONDS)
    ],
    *,
    same: Annotated[
        list[ArgumentName],
        describe(
            "The arguments that are the same in those calls. If omitted, all; an empty list is for "
            "calls with any arguments.",
            max_length=MAX_SAME,
        ),
    ]
    | None = None,
    reason: Annotated[str, describe("Why, for whoever asked.", max_length=MAX_REASON)] = "",
) -> AskedCall:
    """Approve what a rule of the hub asks, and other calls like it for some time."""
    asks = call.services.asks
    found = (await asks.find(call.account, ask)).ask
    arguments = found.told["arguments"]
    if not found.rule:
        raise e.ArgumentInvalid(
            "A program asks each time. Only what a rule of the hub asks about can be approved for "
            "longer.",
            field="ask",
        )
    if unknown := [name for name in same or () if name not in arguments]:
        raise e.ArgumentInvalid(f"The call has no argument {unknown[0]!r}.", field="same")
    names = tuple(sorted(arguments if same is None else {*same}))
    presence = "passkey" if call.arguments.ticket else "token"
    ended = await asks.end(
        call.account, ask, "approved", presence, reason or None, Lasting(seconds, names)
    )
    return view(call, ended)


@asking.with_(scope="decide").changes(
    "ask/edit",
    post(
        PATH + "/{ask}/edit",
        "editAsk",
        "Approve other arguments",
        "Another ask that has these arguments takes the place of this one, approved: its id is "
        "`edited_as` of this one. What a rule asks about, the hub calls with them in the name of "
        "whoever asked; that needs you in a browser, with your passkey.",
        example={"arguments": {"path": "draft.txt"}, "reason": "Not the real one yet."},
        answer="The ask that took its place.",
    ),
    present=check_editor,
    others_words=("why",),
    errors=(e.AskUnknown, e.AskClosed, e.AskNotYours, e.AskOutdated, e.PersonNeeded),
    audit=AuditSpec("ask.decided", "ask"),
    tool=Absent("What is done instead is for a person to write."),
    commands=("asks edit",),
)
async def edit(
    call: Call,
    ask: AskId,
    arguments: Annotated[dict[str, Any], "The arguments of the call, all of them."],
    *,
    reason: Annotated[str, describe("Why, for whoever asked.", max_length=MAX_REASON)] = "",
) -> AskedCall:
    """Approve what a program or a rule asks you, with other arguments; whoever asked reads them."""
    check_size(arguments)
    given = call.arguments
    presence = "passkey" if given.ticket else "token" if given.token else None
    edited = await call.services.asks.edit(call.account, ask, arguments, presence, reason or None)
    return view(call, edited)


class LastingAsks(Struct, frozen=True):
    """Approvals that are good for other calls, what ends first first."""

    asks: list[AskedCall]


@asking.with_(scope="decide").reads(
    "ask/lasting",
    get(
        "/v1/lasting-asks",
        "listLastingAsks",
        "List what you approved for longer",
        answer="Your approvals that last.",
    ),
    others_words=("asks",),
    tool=Absent("People look at it to see what they allowed."),
    commands=("asks lasting",),
)
async def lasting(call: Call) -> LastingAsks:
    """List what you approved for longer, what ends first first."""
    found = await call.services.asks.lasting_of(call.account.id)
    return LastingAsks([view(call, it) for it in found])


@asking.with_(scope="decide").changes(
    "ask/stop",
    delete(PATH + "/{ask}/lasting", "stopAsk", "End an approval that lasts", answer="The ask."),
    errors=(e.AskUnknown, e.AskClosed, e.AskNotYours),
    audit=AuditSpec("ask.stopped", "ask"),
    tool=Absent("People look at it to see what they allowed."),
    commands=("asks stop",),
)
async def stop(call: Call, ask: AskId) -> AskedCall:
    """End an approval that lasts: the next call like it is asked about again."""
    return view(call, await call.services.asks.stop(call.account, ask))


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
