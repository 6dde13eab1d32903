"""Schema check: arguments and results held against what the server itself said of its tools."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Literal

import msgspec

from folkmoot.core.errors import ServerAnswerInvalid
from folkmoot.core.verdict import CONTINUE, Block, Mock, Verdict
from folkmoot.jsonschemas import Fault, Schema, Schemas, prepare
from folkmoot.proxy.interceptors.base import Guard, Means, Options, shown
from folkmoot.proxy.interceptors.view import CALL, LIST, REQUEST, RESPONSE, Key, View

COMPLETE: Final = "complete"
MOST_SESSIONS: Final = 1_024
MOST_TOOLS: Final = 1_024
"""Tools of one session that are remembered; further ones go unchecked."""


class SchemaOptions(Options, frozen=True, kw_only=True):
    """What is checked, and what becomes of calls of tools that were never listed."""

    arguments: bool = True
    results: bool = True
    unlisted: Literal["allow", "block"] = "allow"


class Promise(msgspec.Struct, frozen=True):
    """What a server said of one tool."""

    takes: Schema | None
    gives: Schema | None


class SchemaCheck(Guard):
    """Checks calls and answers against the schemas of the session's last `tools/list`.

    A wrong call is answered the way a tool says that it failed, so that the model that made it
    reads what is wrong and can try again.
    """

    learns = True

    def __init__(self, options: SchemaOptions, means: Means) -> None:
        prepare()
        self._options = options
        self._canonical = means.canonical
        self._schemas = Schemas()
        self._sessions: OrderedDict[str, dict[str, Promise]] = OrderedDict()

    def concerns(self, key: Key) -> bool:
        """Calls of tools, and their answers."""
        return key.method == CALL and key.root in (REQUEST, RESPONSE)

    def learns_from(self, key: Key) -> bool:
        """Lists of tools."""
        return key.method == LIST and key.root == RESPONSE

    def learn(self, view: View) -> None:
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
                takes = self._schemas.of(tool.get("inputSchema"))
                promises[name] = Promise(takes, self._schemas.of(tool.get("outputSchema")))

    def check(self, view: View) -> Verdict:
        """Whether the call, or its answer, is as it should be."""
        promise = self._sessions.get(view.session, {}).get(view.context)
        if view.key.root == RESPONSE:
            return self._check_result(view, promise) if self._options.results else CONTINUE
        return self._check_arguments(view, promise) if self._options.arguments else CONTINUE

    def _check_arguments(self, view: View, promise: Promise | None) -> Verdict:
        if promise is None:
            if self._options.unlisted == "block" and view.session in self._sessions:
                return failed(f"There is no tool {shown(view.context)}.")
            return CONTINUE
        params = view.params
        arguments = params.get("arguments", {}) if isinstance(params, dict) else {}
        faults = faults_of(promise.takes, {} if arguments is None else arguments)
        if not faults:
            return CONTINUE
        told = "; ".join(faults)
        return failed(f"The arguments of {shown(view.context)} do not match its schema: {told}.")

    def _check_result(self, view: View, promise: Promise | None) -> Verdict:
        result = view.result
        if promise is None or promise.gives is None or not isinstance(result, dict):
            return CONTINUE
        if result.get("isError") is True or result.get("resultType", COMPLETE) != COMPLETE:
            return CONTINUE
        if "structuredContent" not in result:
            faults = ["it has no structuredContent"]
        else:
            faults = faults_of(promise.gives, result["structuredContent"])
        if not faults:
            return CONTINUE
        told = "; ".join(faults)
        return Block(
            ServerAnswerInvalid(
                f"The result of {shown(view.context)} does not match its schema: {told}."
            )
        )


def faults_of(schema: Schema | None, value: Any) -> list[Fault]:
    """What is wrong with a value; nothing, where nothing is promised."""
    return [] if schema is None else schema.faults(value)


def failed(text: str) -> Mock:
    """The answer of a tool that failed."""
    return Mock(result={"content": [{"type": "text", "text": text}], "isError": True})
