"""Calls about which a rule of the hub asks a person: the ask, the wait, and the call itself.

Approving an ask starts its call, on the node where it was approved, with exactly the arguments that
were shown; nobody has to wait for it. The answer is kept with the ask.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.asks.limits import MAX_ARGUMENTS_BYTES, MAX_RESULT_BYTES
from folkmoot.asks.machine import StoredAsk, Wish, definition_of
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kinds import parse
from folkmoot.core.message import Notification, Request, Response, members
from folkmoot.gateway.requests import GATEWAY_CALL, CallExtras
from folkmoot.gateway.service import failed, tool_error
from folkmoot.mcp.wire import PROGRESS, TOOLS_CALL
from folkmoot.pipeline import Pipeline, enveloped
from folkmoot.rooms.machine.wire import moment
from folkmoot.taskgroups import BackgroundTasks, background_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from folkmoot.accounts import Accounts
    from folkmoot.accounts.model import Account
    from folkmoot.asks.rules import AskRules
    from folkmoot.asks.service import Asks, ShownAsk
    from folkmoot.core.kinds import Kind
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Clock
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.rights import HubRights
    from folkmoot.gateway.service import GatewayService
    from folkmoot.settings.backends import AskRule

logger = logging.getLogger("folkmoot.asks")

STORE_SECONDS: Final = 30.0
"""How long it can take to note an answer, after the tool had its time."""
NO_ROOM: Final = (
    "Before {} is called, a person is asked, and in a room it can't wait for that. Call it outside "
    "of rooms."
)
RETRY: Final = "Call it again to ask again."
UNKNOWN: Final = (
    "It was approved and started, and what came of it is not known. Look before you call it again."
)


class AskedCalls(Entity):
    """Has people asked before calls of the tools of servers, and makes those they approve."""

    gateway: Gateway
    rights: HubRights
    service: GatewayService
    accounts: Accounts
    asks: Asks
    clock: Clock
    rules: Callable[[], AskRules]
    """Those of this moment."""
    url: str
    """Where the hub is; people decide at `/decisions` there."""
    _background: BackgroundTasks | None = None

    def __post_init__(self) -> None:
        # The interceptors saw the call when it was asked about.
        self._pipeline = Pipeline.to(self.service)
        self.asks.runner = self

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Make approved calls while entered."""
        async with background_tasks() as self._background:
            yield
        self._background = None

    async def answer(
        self, admitted: Admitted, tool: ToolEntry, arguments: dict[str, Any], extras: CallExtras
    ) -> dict[str, Any] | None:
        """What a call is answered about which a person is asked; None if it is just made."""
        rules = self.rules()
        if not rules or admitted.kind is None:
            return None
        rule = rules.find(
            admitted.principal,
            admitted.kind,
            lambda: members(admitted.envelope.message),
            self.rights.names_of,
        )
        if rule is None or rule.verdict == "allow":
            return None
        if rule.verdict == "deny":
            raise e.CapabilityDenied(denied(tool.canonical, rule), rule=rule.name)
        if extras.room:
            raise e.CapabilityDenied(NO_ROOM.format(tool.canonical), rule=rule.name)
        if await self.service.fault(tool, arguments) is not None:
            # It is told what is wrong with it, and nobody is asked.
            return None
        return await self._ask(rule, rules.version, tool, arguments, extras)

    async def _ask(
        self,
        rule: AskRule,
        policy: str,
        tool: ToolEntry,
        arguments: dict[str, Any],
        extras: CallExtras,
    ) -> dict[str, Any] | None:
        """Ask, wait for a while, and tell what came of it; None if it is approved already."""
        came_with = await self.accounts.authentication.by_id(extras.credential_id)
        if came_with is None or came_with.account is None:
            raise e.CapabilityDenied(denied(tool.canonical, rule), rule=rule.name)
        if len(msgspec.json.encode(arguments)) > MAX_ARGUMENTS_BYTES:
            most = MAX_ARGUMENTS_BYTES // 1024
            raise e.ArgumentInvalid(
                f"Before {tool.canonical} is called, a person is asked, and nobody is shown more "
                f"than {most} KiB of arguments.",
                field="arguments",
            )
        account = came_with.account
        wish = Wish(
            tool=tool.canonical,
            arguments=arguments,
            why=rule.reason,
            until=self.clock.now() + rule.expires_seconds,
            person=rule.person,
            rule=rule.name,
            policy=policy,
            definition=definition_of(tool.definition, tool.schema),
        )
        if await self.asks.lasting(account, rule.to or account.handle, wish) is not None:
            return None
        made = await self.asks.make(
            account,
            came_with.credential.lasting_id,
            came_with.credential.label,
            rule.to or account.handle,
            wish,
        )
        if extras.tell is not None and extras.progress:
            message = f"@{made.to} was asked whether {tool.canonical} can be called."
            params = {"progress": 0, "message": message}
            extras.tell(Notification(method=PROGRESS, params=params))
        try:
            found = await self.asks.wait(account, made.ask.id, rule.wait_seconds)
        except asyncio.CancelledError:
            # Whoever gave the call up was not told that it is asked about.
            self._start(self._withdraw(account, made.ask))
            raise
        if (other := found.ask.edited_as) is None:
            return self.told(found, tool)
        found = await self.asks.wait(account, other, rule.wait_seconds)
        return with_text(self.told(found, tool), edited(found))

    def told(self, found: ShownAsk, tool: ToolEntry | None = None) -> dict[str, Any]:
        """What the caller is answered, in words that a model acts on."""
        ask, who = found.ask, f"@{found.to}"
        state = ask.state
        told: dict[str, Any] = {"ask_id": ask.id}
        match state:
            case "done":
                result: dict[str, Any] = msgspec.json.decode(ask.result or b"{}")
                return result
            case "open" | "running":
                waits = "has not decided yet" if state == "open" else "approved it: it is running"
                told |= {
                    "status": "asked" if state == "open" else "running",
                    "expires_at": moment(ask.until),
                    "url": f"{self.url}/decisions",
                    "message": f"{who} was asked whether {ask.tool} can be called, and {waits}. "
                    "Once it is approved, the hub makes this call; do not call it again. "
                    "ask/result with this ask_id and wait tells what came of it.",
                }
                shown = tool_error(told)
                # A result without the structure that the tool promises has to be an error.
                shown["isError"] = tool is not None and "outputSchema" in tool.definition
                return shown
            case "rejected":
                why = f": {ask.reason}" if ask.reason else "."
                sentence = f"{who} rejected this call{why}"
            case "expired":
                sentence = f"{who} did not decide in time, so {ask.tool} was not called. {RETRY}"
            case "unknown":
                sentence = UNKNOWN
            case _:
                sentence = f"The ask was withdrawn, so {ask.tool} was not called. {RETRY}"
        return tool_error({"error": sentence, "code": f"ask_{state}", **told})

    async def check(self, ask: StoredAsk, instead_of: StoredAsk | None = None) -> float:
        """Refuse what is not what was shown any more, or other arguments than were asked about that
        do not fit or that other rules are about; else how long the call can take.
        """
        principal = await self.accounts.principal(ask.credential_id)
        if principal is None or principal.account_id != ask.asker_id:
            raise e.AskOutdated("What asked for this can't use the hub any more.")
        told = ask.told
        if told["policy"] != self.rules().version:
            raise e.AskOutdated("The hub's rules have changed since. It has to be asked again.")
        tool = self.gateway.catalogue.tools.get(ask.tool)
        if (
            tool is None
            or tool.quarantined
            or definition_of(tool.definition, tool.schema) != told["definition"]
        ):
            raise e.AskOutdated(f"{ask.tool} is not the tool any more that was asked about.")
        backend = self.gateway.backends.get(tool.namespace)
        if backend is None:
            raise e.AskOutdated(f"The server {tool.namespace} was removed.")
        rights, kind = self.rights.of_principal(principal), kind_of(ask)
        if not rights.allows(kind, members(request_of(instead_of or ask))):
            raise e.AskOutdated(f"@{principal.name} is not allowed to call {ask.tool} any more.")
        if instead_of is not None:
            if not rights.allows(kind, members(request_of(ask))):
                raise e.ArgumentInvalid(
                    f"@{principal.name} is not allowed to call {ask.tool} with these arguments.",
                    field="arguments",
                )
            if self._rule_of(principal, ask) != self._rule_of(principal, instead_of):
                raise e.ArgumentInvalid(
                    "Another rule of the hub is about a call with these arguments. It has to be "
                    "asked by itself.",
                    field="arguments",
                )
            if (fault := await self.service.fault(tool, told["arguments"])) is not None:
                sentence = msgspec.json.decode(fault["content"][0]["text"])["error"]
                raise e.ArgumentInvalid(sentence, field="arguments")
        return backend.spec.call_seconds + STORE_SECONDS

    def _rule_of(self, principal: Principal, ask: StoredAsk) -> str:
        rule = self.rules().find(
            principal,
            kind_of(ask),
            lambda: members(request_of(ask)),
            self.rights.names_of,
            counts=False,
        )
        return "" if rule is None else rule.name

    def run(self, ask: StoredAsk) -> None:
        """Make an approved call."""
        self._start(self._run(ask))

    async def _run(self, ask: StoredAsk) -> None:
        try:
            answer = await self._perform(ask)
        except e.FolkmootError as error:
            answer = failed(error)
        except Exception:
            logger.exception("an approved call failed", extra={"ask": ask.id})
            answer = tool_error({"error": "The hub could not make the call.", "code": "failed"})
        written = msgspec.json.encode(answer)
        if len(written) > MAX_RESULT_BYTES:
            most = MAX_RESULT_BYTES // 1024
            lost = f"The call was made. Its answer has more than {most} KiB and was not kept."
            written = msgspec.json.encode(tool_error({"error": lost, "code": "answer_too_large"}))
        try:
            await self.asks.done(ask, written)
        except e.FolkmootError as error:
            logger.warning(
                "the answer of an approved call was not kept",
                extra={"ask": ask.id, "error": error.code},
            )

    async def _perform(self, ask: StoredAsk) -> dict[str, Any]:
        principal = await self.accounts.principal(ask.credential_id)
        if principal is None:
            raise e.AskOutdated("What asked for this can't use the hub any more.")
        extensions = {GATEWAY_CALL: CallExtras(approved=True)}
        envelope = enveloped(self.clock, request_of(ask), principal, extensions=extensions)
        rights = self.rights.of_principal(principal)
        left = (ask.run_until or 0) - self.clock.now() - STORE_SECONDS / 2
        try:
            async with asyncio.timeout(left):
                response: Response = await self._pipeline.run(envelope, principal, rights)
        except TimeoutError:
            raise e.BackendTimeout(f"{ask.tool} did not answer in time.") from None
        if isinstance(response.result, dict):
            return response.result
        message = getattr(response.error, "message", "The server gave no answer.")
        return tool_error({"error": message, "code": "backend_failed"})

    async def _withdraw(self, account: Account, ask: StoredAsk) -> None:
        with suppress(e.FolkmootError):
            await self.asks.end(account, ask.id, "withdrawn")

    def _start(self, work: Any) -> None:
        if self._background is None:
            # The hub stops: what was started has no answer that could be noted.
            work.close()
        else:
            self._background.run(work)


def denied(tool: str, rule: AskRule) -> str:
    """The refusal of a call by a rule."""
    return f"{tool} is denied by a rule of the hub.{f' {rule.reason}' if rule.reason else ''}"


def edited(found: ShownAsk) -> str:
    """What whoever called is told of a call with other arguments."""
    arguments = msgspec.json.encode(found.ask.told["arguments"]).decode()
    why = f", saying: {found.ask.reason}" if found.ask.reason else "."
    return f"@{found.to} approved it with other arguments, {arguments}{why}"


def with_text(result: dict[str, Any], text: str) -> dict[str, Any]:
    """A result that says something first."""
    return {**result, "content": [{"type": "text", "text": text}, *result.get("content", ())]}


def kind_of(ask: StoredAsk) -> Kind:
    """The kind of the call that was shown."""
    return parse(f"mcp.request.{TOOLS_CALL}:{ask.tool}")


def request_of(ask: StoredAsk) -> Request:
    """The call that was shown."""
    params = {"name": ask.tool, "arguments": ask.told["arguments"]}
    return Request(id=0, method=TOOLS_CALL, params=params)
