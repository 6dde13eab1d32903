"""Rights at the hub: grant, revoke, look, and invite whom a handle awaits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Struct

from folkmoot.accounts.model import principal_of
from folkmoot.asks.machine import Wish, definition_of
from folkmoot.core import errors as e
from folkmoot.core.kinds import parse
from folkmoot.core.message import Request, members
from folkmoot.gateway.access import (
    AccessOf,
    Explained,
    GrantedView,
    Overview,
    PersonView,
    Revoked,
    ServerShare,
    access,
    access_to,
    explain,
)
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.declare import OPERATED, Topic, delete, get, post, put
from folkmoot.operations.limits import MAX_INVITE_DAYS, MAX_TOOLS_ACCEPTED
from folkmoot.operations.operator.servers import check_known
from folkmoot.operations.row import Absent, After, AuditSpec, Handle, describe
from folkmoot.operations.subjects import find
from folkmoot.rooms.machine.wire import moment

if TYPE_CHECKING:
    from folkmoot.accounts import Account
    from folkmoot.asks.machine import StoredAsk
    from folkmoot.operations.call import Call, Services
    from folkmoot.settings.backends import AskRule

DAY: Final = 86_400
PATH: Final = "/v1/people/{handle}"
IN_THE_CONSOLE: Final = Absent("The console has it; 'folkmoot grant' takes patterns.")
CAPABILITIES: Final = (
    "Capabilities, such as mcp.request.tools/call:files:read_*, or their short forms."
)
ToolNames = Annotated[
    list[Annotated[str, describe("A tool by its name, or a whole server.", max_length=1024)]],
    describe(
        "Tools by their canonical names, or whole servers by their namespaces.",
        min_length=1,
        max_length=MAX_TOOLS_ACCEPTED,
    ),
]
operator = Topic(scope="operate", who="operator", tool=OPERATED)


@operator.reads(
    "folkmoot/grants",
    get("/v1/grants", "listGrants", "List who has more rights"),
    needs=("grant_views",),
    commands=("rights",),
)
async def grants(call: Call, *, after: After = "") -> Overview:
    """List everyone who has rights beyond the defaults."""
    return await call.services.grant_views.overview(after)


@operator.reads(
    "folkmoot/grants_of",
    get(PATH + "/grants", "getGrants", "Show someone's capabilities"),
    errors=(e.UserNotFound,),
    needs=("grant_views",),
    commands=("rights",),
)
async def grants_of(call: Call, handle: Handle) -> PersonView:
    """Show all capabilities of one account, and where each comes from."""
    return await call.services.grant_views.person(handle)


@operator.changes(
    "folkmoot/grant",
    post(
        PATH + "/grants",
        "grant",
        "Grant someone capabilities",
        example={"patterns": ["files:read_*"]},
    ),
    errors=(e.CommandInvalid, e.PatternSyntax, e.TooManyCapabilities, e.UserNotFound),
    needs=("granting",),
    audit=AuditSpec("hub.grant", "handle", by_service=True),
    commands=("grant",),
)
async def grant(
    call: Call,
    handle: Handle,
    patterns: Annotated[list[str], describe(CAPABILITIES, min_length=1)],
) -> GrantedView:
    """Grant or deny someone capabilities at the hub. Takes effect at once."""
    return await call.services.granting.grant(handle, patterns, by=call.caller.account)


@operator.destroys(
    "folkmoot/revoke",
    delete(PATH + "/grants", "revoke", "Revoke what was granted"),
    errors=(e.CommandInvalid, e.PatternSyntax, e.UserNotFound),
    needs=("granting",),
    audit=AuditSpec("hub.revoke", "handle", by_service=True),
    commands=("revoke",),
)
async def revoke(
    call: Call,
    handle: Handle,
    *,
    patterns: Annotated[list[str], CAPABILITIES] | None = None,
    everything: Annotated[bool, "Everything that was granted, instead of `patterns`."] = False,
) -> Revoked:
    """Revoke what was granted. Rights from the settings file are changed there."""
    if bool(patterns) == everything:
        raise e.CommandInvalid("Give the patterns to revoke, or everything.")
    return await call.services.granting.revoke(
        handle, patterns or [], everything=everything, by=call.caller.account
    )


@operator.reads(
    "folkmoot/access_of",
    get(PATH + "/access", "getAccessOf", "Show what someone can use"),
    errors=(e.BackendUnknown, e.CommandInvalid, e.UnknownTool, e.UserNotFound),
    needs=("fleet", "rights"),
    commands=IN_THE_CONSOLE,
)
async def access_of(
    call: Call,
    handle: Handle,
    *,
    tool: Annotated[str, describe("A tool by its canonical name.", max_length=1024)] = "",
) -> AccessOf:
    """Show which servers someone can use; with a tool, whether they can call it, and why or why
    not.
    """
    services = call.services
    account = await find(services, handle)
    answer = explained(services, account, tool) if tool else None
    return AccessOf(handle=account.handle, servers=shares(services, account), answer=answer)


@operator.changes(
    "folkmoot/set_access",
    put(
        PATH + "/access",
        "setAccessOf",
        "Allow someone tools",
        example={"tools": ["files:read"], "allowed": True},
    ),
    errors=(
        e.BackendUnknown,
        e.CommandInvalid,
        e.TooManyCapabilities,
        e.UnknownTool,
        e.UserNotFound,
    ),
    needs=("fleet", "granting"),
    audit=AuditSpec("hub.grant", "handle", by_service=True),
    commands=IN_THE_CONSOLE,
)
async def set_access(
    call: Call,
    handle: Handle,
    tools: ToolNames,
    *,
    allowed: Annotated[bool, "Whether they can call them."] = True,
) -> AccessOf:
    """Let someone call tools or use whole servers, or take that away. Takes effect at once."""
    services, by = call.services, call.caller.account
    account = await find(services, handle)
    for name in tools:
        check_tool(services, name)
    granting, granted = services.granting, services.rights.granted.get(account.id, {})
    # What is allowed is not denied any longer.
    before = [f"!{name}" for name in tools] if allowed else tools
    gone = [each for each in granting.meant(before) if each in granted]
    whole = () if allowed else tuple(f"{name}:" for name in tools if ":" not in name)
    for each in granted:
        what = each.partition(":")[2]
        if each not in gone and each[0] != "!" and what.startswith(whole):
            gone.append(each)
    if gone:
        await granting.revoke(account.handle, gone, by=by)
    new = tools
    if not allowed:
        # What they can call by more than what was granted, such as a tool of a server that is open
        # to everyone, is denied.
        new = [f"!{name}" for name in tools if can_use(services, account, name)]
    if new:
        await granting.grant(account.handle, new, by=by)
    return AccessOf(handle=account.handle, servers=shares(services, account), answer=None)


class JudgedCall(Struct, frozen=True, kw_only=True):
    """What would become of a call."""

    verdict: Annotated[
        Literal["allow", "ask", "deny"],
        "Whether it would be made, a person would be asked first, or it would be refused.",
    ]
    rule: Annotated[str, "The rule of `[asks]` that says so; empty if none does."]
    to: Annotated[str, "Who would be asked; empty if nobody."]
    person: Annotated[bool, "Whether only a person in a browser could decide."]
    sentence: str


@operator.reads(
    "folkmoot/judge_call",
    post(
        PATH + "/judge-call",
        "judgeCall",
        "Tell what would become of a call",
        example={"tool": "files:read", "arguments": {"path": "notes.txt"}},
    ),
    errors=(e.BackendUnknown, e.UnknownTool, e.UserNotFound),
    needs=("ask_rules", "asks", "fleet", "rights"),
    commands=("policy test",),
)
async def judge_call(
    call: Call,
    handle: Handle,
    tool: Annotated[str, describe("A tool by its canonical name.", max_length=1024)],
    *,
    arguments: Annotated[dict[str, Any], "The arguments of the call."] | None = None,
) -> JudgedCall:
    """Tell what would become of someone's call of a tool: whether it is made, a person is asked
    first, or it is refused, and by which rule. Nothing is called.
    """
    services = call.services
    account = await find(services, handle)
    answer = explained(services, account, tool)
    kind, principal = parse(f"mcp.request.{TOOLS_CALL}:{tool}"), principal_of(account)
    params = {"name": tool, "arguments": arguments or {}}
    payload = members(Request(id=0, method=TOOLS_CALL, params=params))
    if answer.may == "none" or not services.rights.of_principal(principal).allows(kind, payload):
        return JudgedCall(verdict="deny", rule="", to="", person=False, sentence=answer.sentence)
    rule = services.ask_rules().find(
        principal, kind, lambda: payload, services.rights.names_of, counts=False
    )
    if rule is None:
        sentence = f"The hub calls {tool}: no rule asks anyone before @{account.handle} does."
        return JudgedCall(verdict="allow", rule="", to="", person=False, sentence=sentence)
    to = (rule.to or account.handle) if rule.verdict == "ask" else ""
    if to and (lasting := await lasting_for(services, account, to, rule, tool, params)):
        until = moment(lasting.lasts_until or 0)
        sentence = f"The hub calls {tool}: @{to} approved such calls until {until}."
        return JudgedCall(verdict="allow", rule=rule.name, to=to, person=False, sentence=sentence)
    does = {"ask": f"asks @{to} before it calls", "allow": "calls", "deny": "does not call"}
    beyond = f" beyond {rule.more_than} such calls in {rule.seconds} s" if rule.more_than else ""
    return JudgedCall(
        verdict=rule.verdict,
        rule=rule.name,
        to=to,
        person=rule.verdict == "ask" and (rule.person or to == account.handle),
        sentence=f"The hub {does[rule.verdict]} {tool}{beyond}, by the rule {rule.name}.",
    )


async def lasting_for(
    services: Services,
    account: Account,
    to: str,
    rule: AskRule,
    tool: str,
    params: dict[str, Any],
) -> StoredAsk | None:
    """The approval that is good for a call that a rule asks about."""
    entry = services.gateway.catalogue.tools.get(tool)
    if entry is None:
        return None
    wish = Wish(
        tool=tool,
        arguments=params["arguments"],
        why="",
        until=0,
        rule=rule.name,
        policy=services.ask_rules().version,
        definition=definition_of(entry.definition, entry.schema),
    )
    try:
        return await services.asks.lasting(account, to, wish)
    except e.UserNotFound:
        return None


def shares(services: Services, account: Account) -> list[ServerShare]:
    """What someone can use of each server."""
    held, parts = services.rights.held(account), services.gateway.catalogue.parts
    found = []
    for namespace in sorted(services.gateway.backends):
        rows = parts[namespace].rows["tools"] if namespace in parts else ()
        share = access(held, namespace, rows)
        found.append(ServerShare(namespace=namespace, tools=len(rows), access=share))
    return found


def can_use(services: Services, account: Account, name: str) -> bool:
    """Whether someone can call a tool, or use any of a server."""
    from folkmoot.gateway.part import kind_of

    held = services.rights.held(account)
    found = access_to(held, kind_of("tools", name)) if ":" in name else access(held, name, ())
    return found.may != "none"


def explained(services: Services, account: Account, tool: str) -> Explained:
    """Why someone can call a tool, or cannot."""
    from folkmoot.gateway.part import kind_of

    check_tool(services, tool)
    kind = kind_of("tools", tool)
    part = services.gateway.catalogue.parts.get(tool.partition(":")[0])
    return explain(
        account.handle,
        tool,
        access_to(services.rights.held(account), kind),
        exact=f"!{kind}",
        suspended=account.suspended_at is not None,
        held=part.tools[tool].quarantined if part else "",
    )


def check_tool(services: Services, name: str) -> None:
    """Refuse what is neither a server nor a tool that one lists."""
    namespace, colon, _ = name.partition(":")
    check_known(services.fleet, namespace or "-")
    part = services.gateway.catalogue.parts.get(namespace)
    if colon and (part is None or name not in part.tools or "*" in name):
        raise e.UnknownTool(f"{namespace} has no such tool.")


class InvitedHandle(Struct, frozen=True):
    """An invite for one handle; it is not shown again."""

    handle: str
    invite_code: str
    invite_url: str
    until: int


@operator.adds(
    "folkmoot/invite_for",
    post(PATH + "/invite", "inviteFor", "Create an invite for a handle", example={"days": 7}),
    needs=("granting",),
    audit=AuditSpec("account.invited", "handle", by_service=True),
    commands=("invite",),
)
async def invite_for(
    call: Call,
    handle: Handle,
    *,
    days: Annotated[int, describe("How long it is valid.", ge=1, le=MAX_INVITE_DAYS)] = 7,
) -> InvitedHandle:
    """Create an invite for a handle that nobody has, even if registration is closed. It replaces an
    earlier one.
    """
    made = await call.services.granting.invite(handle, days * DAY, by=call.caller.account)
    url = f"{call.services.url.rstrip('/')}/invite/{made.code}"
    return InvitedHandle(made.handle, made.code, url, made.until)
