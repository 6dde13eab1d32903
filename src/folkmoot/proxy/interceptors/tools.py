"""Tools: which of them a client sees, and whether calls keep to what the server said of them."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any, Final, Literal

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.glob import glob
from folkmoot.core.verdict import CONTINUE, Block, Mock, Verdict
from folkmoot.jsonschemas import Fault, Schema, Schemas
from folkmoot.mcp.wire import COMPLETE, RESULT_TYPE, TOOLS_CALL, TOOLS_LIST
from folkmoot.proxy.interceptors.base import (
    REQUEST,
    RESPONSE,
    Canonical,
    Guard,
    Means,
    MessageKey,
    MessageView,
    OptionInvalid,
    Options,
    truncated,
)

_SEPARATOR: Final = re.compile(r"[/:]")
"""What stands between a namespace and a name; in the safe spelling it is an underscore."""


class ToolOptions(Options, frozen=True, kw_only=True):
    """Globs over the names of tools; a deny wins over an allow."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class ToolFilter(Guard):
    """Leaves tools out of lists and stops calls of them."""

    def __init__(self, options: ToolOptions, means: Means) -> None:
        if options.allow is None and not options.deny:
            raise OptionInvalid("needs 'allow' or 'deny'")
        allow = options.allow
        self._allowed = None if allow is None else NameFilter(allow, means.canonical)
        self._denied = NameFilter(options.deny, means.canonical)

    def concerns(self, key: MessageKey) -> bool:
        """Calls, and answers that list tools."""
        return (key.root, key.method) in ((REQUEST, TOOLS_CALL), (RESPONSE, TOOLS_LIST))

    def check(self, view: MessageView) -> Verdict:
        """Stop a call, or leave out what is not to be seen."""
        if view.key.root == REQUEST:
            if self._may(view.context):
                return CONTINUE
            return Block(
                e.BlockedByInterceptor(f"The tool {truncated(view.context)} is not allowed here.")
            )
        result = view.result
        listed = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(listed, list):
            return CONTINUE
        kept = [tool for tool in listed if self._may(view.canonical(_name(tool)))]
        if len(kept) == len(listed):
            return CONTINUE
        return view.with_member("result", {**result, "tools": kept})

    def _may(self, name: str) -> bool:
        return (self._allowed is None or name in self._allowed) and name not in self._denied


class NameFilter:
    """The names that globs stand for. A tool may be spelled in any way that clients know it by.

    Which tool a spelling means may be known only later, once its server was reached.
    """

    __slots__ = ("_canonical", "_globs", "_late", "_whole")

    def __init__(self, patterns: tuple[str, ...], canonical: Canonical) -> None:
        names = [each for each in patterns if "*" not in each]
        self._canonical = canonical
        self._whole = frozenset(map(canonical, names))
        self._late = tuple(each for each in names if canonical(each) == each)
        self._globs = tuple(glob(each) for each in patterns if "*" in each)

    def __contains__(self, name: str) -> bool:
        spelled = _SEPARATOR.sub("_", name, 1)
        if name in self._whole or spelled in self._whole:
            return True
        if any(each.matches(name) or each.matches(spelled) for each in self._globs):
            return True
        return any(self._canonical(each) == name for each in self._late)


def _name(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


MOST_SESSIONS: Final = 1_024
MOST_TOOLS: Final = 1_024
"""Tools of one session that are remembered; further ones go unchecked."""


class SchemaOptions(Options, frozen=True, kw_only=True):
    """What is checked, and what becomes of calls of tools that were never listed."""

    arguments: bool = True
    results: bool = True
    unlisted: Literal["allow", "block"] = "allow"


class Promise(msgspec.Struct, frozen=True):
    """A server's definition of one tool."""

    takes: Schema | None
    gives: Schema | None


class SchemaCheck(Guard):
    """Checks calls and answers against the schemas of the session's last `tools/list`.

    A wrong call is answered the way a tool says that it failed, so that the model that made it
    reads what is wrong and can try again.
    """

    learns = True

    def __init__(self, options: SchemaOptions, means: Means) -> None:
        self._options = options
        self._canonical = means.canonical
        self._schemas = Schemas()
        self._sessions: OrderedDict[str, dict[str, Promise]] = OrderedDict()

    def concerns(self, key: MessageKey) -> bool:
        """Calls of tools, and their answers."""
        return key.method == TOOLS_CALL and key.root in (REQUEST, RESPONSE)

    def learns_from(self, key: MessageKey) -> bool:
        """Lists of tools."""
        return key.method == TOOLS_LIST and key.root == RESPONSE

    def learn(self, view: MessageView) -> None:
        """Remember what a list of tools says; a list may come in several pages."""
        result = view.result
        listed = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(listed, list):
            return
        promises = self._sessions.pop(view.session, {})
        if len(self._sessions) >= MOST_SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[view.session] = promises
        for tool in listed:
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(name, str):
                continue
            name = self._canonical(name)
            if name in promises or len(promises) < MOST_TOOLS:
                takes = self._schemas.of(tool.get("inputSchema"), name)
                promises[name] = Promise(takes, self._schemas.of(tool.get("outputSchema"), name))

    def check(self, view: MessageView) -> Verdict:
        """Check a call or its answer against the tool's schemas."""
        promise = self._sessions.get(view.session, {}).get(view.context)
        if view.key.root == RESPONSE:
            return self._check_result(view, promise) if self._options.results else CONTINUE
        return self._check_arguments(view, promise) if self._options.arguments else CONTINUE

    def _check_arguments(self, view: MessageView, promise: Promise | None) -> Verdict:
        if promise is None:
            if self._options.unlisted == "block" and view.session in self._sessions:
                return failed(f"There is no tool {truncated(view.context)}.")
            return CONTINUE
        params = view.params
        arguments = params.get("arguments", {}) if isinstance(params, dict) else {}
        faults = faults_of(promise.takes, {} if arguments is None else arguments)
        if not faults:
            return CONTINUE
        told = "; ".join(faults)
        return failed(
            f"The arguments of {truncated(view.context)} do not match its schema: {told}."
        )

    def _check_result(self, view: MessageView, promise: Promise | None) -> Verdict:
        result = view.result
        if promise is None or promise.gives is None or not isinstance(result, dict):
            return CONTINUE
        if result.get("isError") is True or result.get(RESULT_TYPE, COMPLETE) != COMPLETE:
            return CONTINUE
        if "structuredContent" not in result:
            faults = ["it has no structuredContent"]
        else:
            faults = faults_of(promise.gives, result["structuredContent"])
        if not faults:
            return CONTINUE
        told = "; ".join(faults)
        return Block(
            e.ServerAnswerInvalid(
                f"The result of {truncated(view.context)} does not match its schema: {told}."
            )
        )


def faults_of(schema: Schema | None, value: Any) -> list[Fault]:
    """What is wrong with a value; nothing, where nothing is promised."""
    return [] if schema is None else schema.faults(value)


def failed(text: str) -> Mock:
    """The answer of a tool that failed."""
    return Mock(result={"content": [{"type": "text", "text": text}], "isError": True})
