"""What an operator changes of a running hub: settings that are followed, and rules.

Both are in files, which say the same after the next start. A rule that is added here blocks, holds
or delays calls; what else rules can do is written into their file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.operations.declare import delete, get, patch, post
from folkmoot.operations.operator.hub import ShownSettings
from folkmoot.operations.operator.server_edits import edited
from folkmoot.operations.operator.server_edits import editor as server_editor
from folkmoot.operations.operator.server_edits import settings as following
from folkmoot.operations.operator.servers import operator
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import Absent, AuditSpec, describe
from folkmoot.settings.editing import read, with_rule, with_value, without_rule, write

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.proxy.rules import Rules

RULES_FILE: Final = "rules.toml"
TAPES: Final = "tapes"
MAX_DAYS: Final = 36_500
IN_THE_FILE: Final = Absent("The console has it; in a terminal one edits the file.")
OWN: Final = frozenset({"name", "when", "action", "use", "options"})
"""Members of a rule that are told by themselves; the others are its options."""
RuleName = Annotated[str, describe("The name of the rule.", min_length=1, max_length=100)]

editor = server_editor.with_(
    needs=("reloading", "settings", "interception"),
    errors=(e.CommandInvalid,),
    commands=IN_THE_FILE,
)


class Interception(Protocol):
    """The interceptors of the hub."""

    rules: Rules | None


@editor.changes(
    "folkmoot/change_settings",
    patch("/v1/settings", "changeSettings", "Change settings", example={"registration": "invite"}),
    audit=AuditSpec("settings.changed", by_service=True),
)
async def change_settings(
    call: Call,
    *,
    registration: Annotated[
        Literal["auto", "open", "invite", "closed"],
        "Who can register: everyone, people with an invitation, or with one from an operator.",
    ]
    | None = None,
    record: Annotated[bool, "Whether what is said at /mcp is recorded."] | None = None,
    keep_mail_days: Annotated[
        int, describe("Days after which mail is deleted; 0 keeps it.", ge=0, le=MAX_DAYS)
    ]
    | None = None,
    new_tools: Annotated[
        Literal["hold", "list"],
        "Whether tools that a server adds wait for review, or are listed at once.",
    ]
    | None = None,
    audit_arguments: Annotated[
        Literal["hash", "record", "none"], "What the audit log has of a call's arguments."
    ]
    | None = None,
) -> ShownSettings:
    """Change settings that are followed while the hub runs, in the settings file. Over the network
    it needs https, and your passkey or a token once more.
    """
    given: dict[str, Any] = {
        "registration": registration,
        "record.enabled": record,
        "mail.keep_days": keep_mail_days,
        "gateway.new_tools": new_tools,
        "gateway.audit_arguments": audit_arguments,
    }
    new = {path: value for path, value in given.items() if value is not None}
    follower, folder = following(call), call.services.data_folder
    for path in new:
        origin = follower.loaded.origins[path]
        if not (origin == "default" or origin.startswith(str(follower.loaded.file))):
            raise e.CommandInvalid(f"{path} is set by {origin}. Change it there.")
    if new.get("record.enabled") and not follower.loaded.settings.record.folder:
        new["record.folder"] = str(Path(folder or ".") / TAPES)

    def change(text: str) -> str:
        for path, value in new.items():
            text = with_value(text, tuple(path.split(".")), value)
        return text

    await edited(follower, change)
    told = ", ".join(f"{path} {value}" for path, value in new.items())
    await leave_line(call.services, call.caller, "settings.changed", "", told)
    assert call.services.settings is not None  # noqa: S101 - see `needs`
    return call.services.settings()


class RuleView(Struct, frozen=True, kw_only=True):
    """A rule, as its file has it."""

    name: str
    when: dict[str, Any]
    """What it is about: all of this."""
    action: str
    """What it does, or the interceptor that it uses."""
    options: dict[str, Any]


class RuleList(Struct, frozen=True):
    """The rules in their order, and their file; none where the hub has none."""

    file: str | None
    rules: list[RuleView]


@operator.reads(
    "folkmoot/rules",
    get("/v1/rules", "listRules", "List the rules"),
    needs=("interception",),
    commands=IN_THE_FILE,
)
async def rules(call: Call) -> RuleList:
    """List the rules that block, hold or change messages."""
    return listed(call.services.interception.rules)


@editor.adds(
    "folkmoot/add_rule",
    post(
        "/v1/rules",
        "addRule",
        "Add a rule",
        status=201,
        example={"rule": "No deletions", "action": "hold", "tool": "files:delete_*"},
    ),
    audit=AuditSpec("rule.added", "rule"),
)
async def add_rule(
    call: Call,
    rule: RuleName,
    action: Annotated[
        Literal["block", "hold", "delay"],
        "Refuse the call, hold it until an operator decides, or have it wait.",
    ],
    *,
    tool: Annotated[str, describe("Which tools; `*` stands for anything.", max_length=256)] = "*",
    caller: Annotated[str, describe("Only calls of this handle.", max_length=64)] = "",
    group: Annotated[str, describe("Only calls of this group.", max_length=64)] = "",
    reason: Annotated[
        str, describe("What the caller, or who decides, reads.", max_length=1000)
    ] = "",
    seconds: Annotated[float, describe("How long calls are delayed.", ge=0, le=60)] = 1.0,
) -> RuleList:
    """Add a rule about calls of tools, in the file of rules. Over the network it needs https, and
    your passkey or a token once more.
    """
    who = {"caller": caller.lower().removeprefix("@"), "group": group}
    options: dict[str, Any] = {"seconds": seconds} if action == "delay" else {}
    if reason and action != "delay":
        options = {"message" if action == "block" else "reason": reason}
    table = {
        "name": rule,
        "when": {"tool": tool, **{key: name for key, name in who.items() if name}},
        "action": action,
        **options,
    }
    await rewrite(call, lambda text: with_rule(text, table))
    return listed(call.services.interception.rules)


@editor.destroys(
    "folkmoot/remove_rule",
    delete("/v1/rules/{rule}", "removeRule", "Remove a rule"),
    audit=AuditSpec("rule.removed", "rule"),
)
async def remove_rule(call: Call, rule: RuleName) -> RuleList:
    """Remove a rule from the file of rules. Over the network it needs https, and your passkey or a
    token once more.
    """
    found = listed(call.services.interception.rules).rules
    places = [place for place, each in enumerate(found) if each.name == rule]
    if not places:
        raise e.CommandInvalid("There is no rule of that name.")
    await rewrite(call, lambda text: without_rule(text, places[0]))
    return listed(call.services.interception.rules)


def listed(found: Rules | None) -> RuleList:
    """The rules of a file."""
    if found is None:
        return RuleList(None, [])
    views = []
    for rule in found.ruleset.rules:
        rest = {key: each for key, each in rule.source.items() if key not in OWN}
        views.append(
            RuleView(
                name=rule.name,
                when=rule.source.get("when", {}),
                action=rule.source.get("action") or rule.source["use"],
                options=rest | rule.source.get("options", {}),
            )
        )
    return RuleList(str(found.path), views)


async def rewrite(call: Call, change: Callable[[str], str]) -> None:
    """Change the file of rules, and go by it; what is wrong with it changes nothing."""
    present = call.services.interception.rules
    file = present.path if present else Path(call.services.data_folder or ".") / RULES_FILE
    try:
        before = await asyncio.to_thread(read, file)
        after = change((before or b"").decode()).encode()
        await asyncio.to_thread(write, file, before, after)
        try:
            if present is None:
                where = ("interceptors", "rules")
                await edited(following(call), lambda text: with_value(text, where, str(file)))
            else:
                present.reload()
        except e.FolkmootError:
            await asyncio.to_thread(write, file, after, before or b"")
            raise
    except (e.RulesInvalid, e.SettingsUnwritable) as error:
        raise e.CommandInvalid(f"{error.message.rstrip('.')}. Nothing was saved.") from None
