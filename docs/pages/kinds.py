"""The tables of `reference/kinds.md`, from `folkmoot.core.kinds` and `folkmoot.core.kindcheck`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from docs.pages.errors import sentence
from docs.pages.markdown import code, table
from folkmoot.core import chat, kindcheck, kinds
from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_CONTEXT_BYTES, MAX_KIND_BYTES, MAX_KIND_NAME, MAX_METHOD

PLACES: Final = {
    "tools/call": "params.name",
    "prompts/get": "params.name",
    "resources/read": "params.uri",
    "resources/subscribe": "params.uri",
    "resources/unsubscribe": "params.uri",
    "completion/complete": "params.ref.name or params.ref.uri",
}
"""Where the context of each method stands; the tests hold these words against the code."""

CALL: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write_file"}}


class Wrong(NamedTuple):
    """A message that is refused: its kind and what travels with it."""

    kind: str
    payload: dict[str, Any] | None = None
    to: tuple[str, ...] = ("files",)
    correlation_id: tuple[str, ...] = ()

    def refusal(self) -> e.KindError:
        """The error that refuses it."""
        try:
            kindcheck.check(kinds.parse(self.kind), self.payload, self.to, self.correlation_id)
        except e.KindError as error:
            return error
        raise AssertionError(f"{self.kind} is not refused")


NOTICE: Final = "notifications/progress"

WRONG: Final = (
    (Wrong("mcp.request." + "a" * 200), "a method of 200 characters"),
    (Wrong("mcp/request:tools/call"), "an old spelling, where those are not accepted"),
    (Wrong("mcp.request"), "no method"),
    (Wrong("mcp.ask.tools/call", CALL), "`mcp` has four operations, and this is none of them"),
    (
        Wrong(f"mcp.request.{NOTICE}", {**CALL, "method": NOTICE}),
        "a notification's method in a request",
    ),
    (Wrong("system.welcome", {}), "the gateway's own"),
    (Wrong("mcp.request.tools/list", CALL), "the payload says `tools/call`"),
    (Wrong("mcp.request.tools/call:read_file", CALL), "the payload says `write_file`"),
    (
        Wrong("mcp.request.tools/list:all", {**CALL, "method": "tools/list"}),
        "`tools/list` takes no context",
    ),
    (
        Wrong("chat.message.plain", {"text": "hello", "format": "markdown"}),
        "the payload says `markdown`",
    ),
    (Wrong("mcp.request.tools/call"), "no payload"),
    (
        Wrong("mcp.request.tools/call", {**CALL, "params": {}}),
        "`params.name` is missing",
    ),
    (Wrong("mcp.request.tools/call", {**CALL, "id": True}), "the id is `true`"),
    (
        Wrong(f"mcp.notification.{NOTICE}", {**CALL, "method": NOTICE}),
        "a notification with an id",
    ),
    (
        Wrong("mcp.response.tools/call", {"jsonrpc": "2.0", "id": 1}, correlation_id=("m-1",)),
        "neither result nor error",
    ),
    (Wrong("mcp.request.tools/call", CALL, to=()), "addressed to nobody"),
    (Wrong("mcpx.withdraw.proposal", {}), "it does not say which proposal"),
    (Wrong("mcp.proposal.tools/call", CALL, correlation_id=("m-1",)), "it names an earlier one"),
    (Wrong("mcpx.reject.proposal", {}, correlation_id=("m-1",)), "no reason is given"),
)

OLD: Final = (
    "mcp/request:tools/call",
    "mcp/response:tools/call",
    "mcp/proposal:tools/call",
    "proposal/withdraw",
    "proposal/reject",
    "system/welcome",
    "system/presence",
    "system/error",
    "chat",
    "mcp/*",
    "mcp/request:tools/*",
    "proposal/*",
    "system/*",
)
"""Spellings of the older specification, kinds first and then patterns."""


def known() -> str:
    """Every kind we know, with its sender and meaning."""
    rows = ([code(row.kind), row.sender, row.meaning] for row in kinds.KNOWN_KINDS)
    return table(["Kind", "Sent by", "Meaning"], rows)


def contexts() -> str:
    """Every method that takes a context, and where it stands in the payload."""
    rows = (
        [code(method), " or ".join(code(place) for place in PLACES[method].split(" or "))]
        for method in kindcheck.CONTEXTS
    )
    return table(["Method", "Context is"], rows)


def limits() -> str:
    """How long each part may be."""
    return table(
        ["Part", "At most"],
        [
            ["protocol, operation", f"{MAX_KIND_NAME} characters each"],
            ["method", f"{MAX_METHOD} characters"],
            ["context", f"{MAX_CONTEXT_BYTES:,} bytes"],
            ["the whole kind", f"{MAX_KIND_BYTES:,} bytes"],
        ],
    )


def refusals() -> str:
    """Each way to be wrong, with a message that is wrong in that way."""
    shown = {wrong.refusal().code: (wrong.kind, why) for wrong, why in WRONG}
    rows = []
    for name, error in e.ERRORS.items():
        if issubclass(error, e.KindError):
            kind, why = shown[name]
            example = kind if len(kind) <= 40 else kind[:36] + "…"
            rows.append([code(name), sentence(error), f"{code(example)}: {why}"])
    return table(["Code", "Meaning", "For example"], rows)


def old_spellings() -> str:
    """What the older specification wrote, and what is written now."""
    rows = ([code(old), code(kinds.migrate(old))] for old in OLD)
    return table(["Old", "Now"], rows)


def formats() -> str:
    """What a chat's format may be called."""
    rows = ([code(word), means] for word, means in chat.FORMATS.items())
    return table(["Word", "Meaning"], rows)


BLOCKS = {
    "kinds": known,
    "kind-limits": limits,
    "kind-contexts": contexts,
    "kind-refusals": refusals,
    "kind-old-spellings": old_spellings,
    "chat-formats": formats,
}
