"""What an operator changes of a running hub: settings that are followed, and rules.

Both are in files, which say the same after the next start. A rule that is added here blocks, holds
or delays calls; what else rules can do is written into their file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.operations.operator.hub import ShownSettings
from folkmoot.operations.operator.presence import ERRORS, PRESENT, SECRET, Confirmed
from folkmoot.operations.operator.server_edits import check_editing, edited
from folkmoot.operations.operator.server_edits import settings as following
from folkmoot.operations.rate_limits import OWN_GUESSES
from folkmoot.operations.records import leave_line
from folkmoot.operations.row import Absent, AuditSpec, Nothing, Route, describe, operated
from folkmoot.settings.editing import read, with_rule, with_value, without_rule, write

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.proxy.rules import Rules

RULES_FILE: Final = "rules.toml"
TAPES: Final = "tapes"
MAX_DAYS: Final = 36_500
IN_THE_FILE: Final = Absent("The console has it; in a terminal one edits the file.")


class Interception(Protocol):
    """The interceptors of the hub."""

    rules: Rules | None


class ChangeSettings(Confirmed, frozen=True, kw_only=True):
    """What is to be different; what is left out stays."""

    registration: (
        Annotated[
            Literal["auto", "open", "invite", "closed"],
            describe(
                "Who can register: everyone, people with an invitation, or with one from an "
                "operator."
            ),
        ]
        | None
    ) = None
    record: Annotated[bool, describe("Whether what is said at /mcp is recorded.")] | None = None
    keep_mail_days: (
        Annotated[int, describe("Days after which mail is deleted; 0 keeps it.", ge=0, le=MAX_DAYS)]
        | None
    ) = None
    new_tools: (
        Annotated[
            Literal["hold", "list"],
            describe("Whether tools that a server adds wait for review, or are listed at once."),
        ]
        | None
    ) = None
    audit_arguments: (
        Annotated[
            Literal["hash", "record", "none"],
            describe("What the audit log has of a call's arguments."),
        ]
        | None
    ) = None


PATHS: Final = {
    "registration": "registration",
    "record": "record.enabled",
    "keep_mail_days": "mail.keep_days",
    "new_tools": "gateway.new_tools",
    "audit_arguments": "gateway.audit_arguments",
}
"""The setting of each argument."""


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


RuleName = Annotated[str, describe("The name of the rule.", min_length=1, max_length=100)]


class AddRule(Confirmed, frozen=True, kw_only=True):
    """A rule about calls of tools."""

    rule: RuleName
    action: Annotated[
        Literal["block", "hold", "delay"],
        describe("Refuse the call, hold it until an operator decides, or have it wait."),
    ]
    tool: Annotated[str, describe("Which tools; `*` stands for anything.", max_length=256)] = "*"
    caller: Annotated[str, describe("Only calls of this handle.", max_length=64)] = ""
    group: Annotated[str, describe("Only calls of this group.", max_length=64)] = ""
    reason: Annotated[str, describe("What the caller, or who decides, reads.", max_length=1000)] = (
        ""
    )
    seconds: Annotated[float, describe("How long calls are delayed.", ge=0, le=60)] = field(
        default=1.0
    )


class RemoveRule(Confirmed, frozen=True, kw_only=True):
    """Which rule."""

    rule: RuleName


async def change_settings(call: Call[ChangeSettings]) -> ShownSettings:
    """Change settings in their file, and go by them at once."""
    await check_editing(call, "folkmoot/change_settings")
    given = {name: getattr(call.arguments, name) for name in PATHS}
    new = {PATHS[name]: value for name, value in given.items() if value is not None}
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


async def rules(call: Call[Nothing]) -> RuleList:
    """The rules as the hub goes by them."""
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


OWN: Final = frozenset({"name", "when", "action", "use", "options"})


async def add_rule(call: Call[AddRule]) -> RuleList:
    """Add a rule behind the others, and go by it at once."""
    await check_editing(call, "folkmoot/add_rule")
    given = call.arguments
    who = {"caller": given.caller.lower().removeprefix("@"), "group": given.group}
    options: dict[str, Any] = {"seconds": given.seconds} if given.action == "delay" else {}
    if given.reason and given.action != "delay":
        options = {"message" if given.action == "block" else "reason": given.reason}
    rule = {
        "name": given.rule,
        "when": {"tool": given.tool, **{key: name for key, name in who.items() if name}},
        "action": given.action,
        **options,
    }
    await rewrite(call, lambda text: with_rule(text, rule))
    return listed(call.services.interception.rules)


async def remove_rule(call: Call[RemoveRule]) -> RuleList:
    """Remove a rule from the file."""
    await check_editing(call, "folkmoot/remove_rule")
    found = listed(call.services.interception.rules).rules
    places = [place for place, rule in enumerate(found) if rule.name == call.arguments.rule]
    if not places:
        raise e.CommandInvalid("There is no rule of that name.")
    await rewrite(call, lambda text: without_rule(text, places[0]))
    return listed(call.services.interception.rules)


async def rewrite(call: Call[Any], change: Callable[[str], str]) -> None:
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


NEEDS: Final = ("reloading", "settings", "interception")
COMMON: Final[dict[str, Any]] = {
    "secret": SECRET,
    "limits": OWN_GUESSES,
    "errors": (e.CommandInvalid, *ERRORS),
    "needs": NEEDS,
    "commands": IN_THE_FILE,
}

SETTINGS_EDITS = (
    operated(
        name="folkmoot/change_settings",
        description="Change settings that are followed while the hub runs, in the settings file. "
        "Over the network it needs https, and your passkey or a token once more.",
        handler=change_settings,
        audit=AuditSpec("settings.changed", by_service=True),
        routes=(
            Route(
                "PATCH",
                "/v1/settings",
                "changeSettings",
                "Change settings",
                headers=PRESENT,
                example={"registration": "invite"},
            ),
        ),
        **COMMON,
    ),
    operated(
        name="folkmoot/rules",
        description="List the rules that block, hold or change messages.",
        handler=rules,
        needs=("interception",),
        routes=(Route("GET", "/v1/rules", "listRules", "List the rules"),),
        commands=IN_THE_FILE,
    ),
    operated(
        name="folkmoot/add_rule",
        description="Add a rule about calls of tools, in the file of rules. Over the network it "
        "needs https, and your passkey or a token once more.",
        handler=add_rule,
        audit=AuditSpec("rule.added", "rule"),
        routes=(
            Route(
                "POST",
                "/v1/rules",
                "addRule",
                "Add a rule",
                status=201,
                headers=PRESENT,
                example={"rule": "No deletions", "action": "hold", "tool": "files:delete_*"},
            ),
        ),
        **COMMON,
    ),
    operated(
        name="folkmoot/remove_rule",
        description="Remove a rule from the file of rules. Over the network it needs https, and "
        "your passkey or a token once more.",
        handler=remove_rule,
        audit=AuditSpec("rule.removed", "rule"),
        routes=(
            Route("DELETE", "/v1/rules/{rule}", "removeRule", "Remove a rule", headers=PRESENT),
        ),
        **COMMON,
    ),
)
