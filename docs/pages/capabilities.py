"""The tables of `reference/capabilities.md`: patterns and verdicts, as the code gives them."""

from __future__ import annotations

import json
from typing import Any, Final

from docs.pages.errors import sentence
from docs.pages.markdown import code, table
from folkmoot.core import capability, glob, policy
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.core.limits import (
    MAX_CACHED_VERDICTS,
    MAX_CAPABILITIES,
    MAX_CAPABILITIES_TOLD,
    MAX_CONSTRAINED,
    MAX_CONSTRAINT_DEPTH,
    MAX_CONSTRAINT_STRING,
    MAX_CONSTRAINT_VALUES,
    MAX_KIND_BYTES,
    MAX_SEARCHED,
    MAX_TARGET,
    MAX_TARGETS,
)
from folkmoot.core.policy import Principal

PATTERNS: Final = (
    ("mcp.*", "mcp.request.tools/call:read_file"),
    ("mcp.*", "mcpx.withdraw.proposal"),
    ("mcp.request.*", "mcp.request.tools/call"),
    ("mcp.request.*", "mcp.notification.notifications/progress"),
    ("mcp.request.tools/*", "mcp.request.tools/list"),
    ("mcp.request.tools/*", "mcp.request.resources/read"),
    ("mcp.request.tools/call", "mcp.request.tools/call:read_file"),
    ("mcp.request.tools/call:*", "mcp.request.tools/call"),
    ("mcp.request.tools/call:read_*", "mcp.request.tools/call:read_file"),
    ("mcp.request.tools/call:read_*", "mcp.request.tools/call:write_file"),
    ("mcp.request.tools/call:github:*", "mcp.request.tools/call:github:create_issue"),
    ("chat.message", "chat.message.text"),
    ("chat.message.*", "chat.message"),
    ("*", "reasoning.thought"),
    ("*", "system.welcome"),
)

COVERS: Final[tuple[tuple[list[Any], Any], ...]] = (
    (["mcp.request.*"], "mcp.request.tools/call:read_file"),
    (["mcp.request.tools/call:read_*"], "mcp.request.tools/call"),
    (["mcp.request.tools/call:a", "mcp.request.tools/call:b"], "mcp.request.tools/call:*"),
    (["mcp.*", "!mcp.request.tools/call:rm"], "mcp.request.tools/*"),
    (["mcp.*", "!mcp.request.tools/call:rm"], "mcp.request.resources/read"),
    (["*", "!chat.message"], "mcp.notification.*"),
    (["chat.*"], "!chat.message"),
    (["mcp.request.*"], {"kind": "mcp.request.*", "to": "files"}),
    ([{"kind": "mcp.request.*", "to": "file*"}], {"kind": "mcp.request.*", "to": "files"}),
    ([{"kind": "mcp.request.*", "to": "files"}], "mcp.request.*"),
)

VERDICTS: Final[tuple[tuple[list[Any], str], ...]] = (
    (["chat.*"], "chat.message"),
    (["chat.*", "!chat.message"], "chat.message"),
    (["chat.*", "!chat.message"], "chat.acknowledge"),
    (["*", "!mcp.*"], "chat.message"),
    (["*", "!mcp.*"], "reasoning.thought"),
    (["*", "!chat.message.markdown"], "chat.message.markdown"),
    (["*", "!chat.message.markdown"], "chat.message.plain"),
    (["*", "!chat.message"], "mcp.request.tools/call:chat.say"),
    (["*", "!chat.message"], "mcp.proposal.tools/call:chat.say"),
    (["*", "!mcp.request.tools/call:chat.say"], "chat.message"),
    (["mcp.request.tools/call"], "mcp.request.tools/call:read_file"),
    (["mcp.proposal.*"], "mcp.request.tools/call:read_file"),
    (["chat.*"], "mcp.request.tools/call:read_file"),
    ([], "mcp.response.tools/call"),
    (["!mcp.response.*"], "mcp.response.tools/call"),
)


def examples() -> str:
    """Which pattern speaks of which kind."""
    rows = (
        [code(pattern), code(kind), yes(capability.capability(pattern).matches(parse(kind)))]
        for pattern, kind in PATTERNS
    )
    return table(["Pattern", "Kind", "Covered"], rows)


def grants() -> str:
    rows = ([held(own), written(asked), yes(Rights(own).covers(asked))] for own, asked in COVERS)
    return table(["Held", "To be granted", "May be"], rows)


def verdicts() -> str:
    """What policy says to one who holds these capabilities."""
    rows = []
    for own, kind in VERDICTS:
        verdict = policy.judge(Principal("1", "alice"), Rights(own), parse(kind))
        told = f" ({code(verdict.error.code)})" if verdict.error else ""
        rows.append([held(own), code(kind), verdict.decision.value + told])
    return table(["Held", "Effective kind", "Verdict"], rows)


def refusals() -> str:
    """What is wrong with a capability."""
    rows = (
        [code(name), sentence(error)]
        for name, error in e.ERRORS.items()
        if issubclass(error, e.CapabilityError)
    )
    return table(["Code", "Meaning"], rows)


def limits() -> str:
    """How much of everything there may be."""
    return table(
        ["What", "At most"],
        [
            ["capabilities one principal holds", f"{MAX_CAPABILITIES:,}"],
            ["characters of a pattern", f"{MAX_KIND_BYTES:,}"],
            ["values in one payload constraint", str(MAX_CONSTRAINT_VALUES)],
            ["targets in one `to`", str(MAX_TARGETS)],
            ["characters of a target", str(MAX_TARGET)],
            [
                "values in all payload constraints and targets one holds",
                str(MAX_CONSTRAINED),
            ],
            ["depth of a payload constraint", str(MAX_CONSTRAINT_DEPTH)],
            ["characters of a string in a constraint", str(MAX_CONSTRAINT_STRING)],
            ["characters a `*` of a constraint looks through", f"{MAX_SEARCHED:,}"],
            ["verdicts kept for one principal", str(MAX_CACHED_VERDICTS)],
            ["compiled globs kept", f"{glob.glob.cache_parameters()['maxsize']:,}"],
            ["capabilities a refusal lists", str(MAX_CAPABILITIES_TOLD)],
        ],
    )


def held(own: list[Any]) -> str:
    return ", ".join(map(written, own)) or "nothing"


def written(source: Any) -> str:
    """A capability as it is written."""
    return code(source if isinstance(source, str) else json.dumps(source))


def yes(answer: bool) -> str:  # noqa: FBT001
    return "yes" if answer else "no"


BLOCKS = {
    "capability-examples": examples,
    "capability-grants": grants,
    "capability-verdicts": verdicts,
    "capability-refusals": refusals,
    "capability-limits": limits,
}
