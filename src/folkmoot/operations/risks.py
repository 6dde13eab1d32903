"""How risky it is to let something be done, for whoever is to decide about it.

    destroys    it says that it may destroy something
    unknown     it does not say what it does; MCP takes such a tool for one that may destroy
    acts        it adds or changes something beyond the server that does it
    changes     it adds or changes something there
    reads       it changes nothing

What a tool says of itself are its annotations. They are its server's word, and nothing proves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from folkmoot.core import chat
from folkmoot.core.kinds import parse
from folkmoot.decisions import Risk
from folkmoot.mcp import wire
from folkmoot.rooms.machine import GATEWAY

if TYPE_CHECKING:
    from folkmoot.operations.call import Call
    from folkmoot.rooms.model import ProposalView
    from folkmoot.rooms.proposals import Decidable

RISKS: Final[tuple[Risk, ...]] = get_args(Risk)
"""The riskiest first."""
HINTS: Final = ("readOnlyHint", "destructiveHint", "openWorldHint")
READING: Final = frozenset(
    (
        wire.PING,
        wire.TOOLS_LIST,
        wire.PROMPTS_LIST,
        wire.PROMPTS_GET,
        wire.RESOURCES_LIST,
        wire.TEMPLATES_LIST,
        wire.RESOURCES_READ,
        wire.COMPLETION,
    )
)
"""The methods that change nothing."""


def risk_of(annotations: Any) -> Risk:
    """How risky a tool is, by what it says of itself."""
    said = annotations if isinstance(annotations, dict) else {}
    read_only, destroys, open_world = (said.get(name) for name in HINTS)
    if read_only is True:
        return "reads"
    if destroys is True:
        return "destroys"
    if destroys is False:
        return "changes" if open_world is False else "acts"
    return "unknown"


def risk_of_method(method: str) -> Risk:
    """How risky a request other than the call of a tool is."""
    return "reads" if method in READING else "unknown"


def riskiest(*risks: Risk) -> Risk:
    """The worst of several."""
    return min(risks, key=RISKS.index)


def risk_of_tool(call: Call, name: str) -> Risk:
    """How risky a call of a tool is: one of the hub's own, or of a server's behind it."""
    from folkmoot.operations.table import CATALOGUE

    own = CATALOGUE.find(name) if name else None
    if own is not None:
        return risk_of(own.hints)
    entry = call.services.gateway.catalogue.tool(name) if name else None
    return "unknown" if entry is None else risk_of(entry.definition.get("annotations"))


def risk_of_proposal(call: Call, one: Decidable | ProposalView) -> Risk:
    """How risky it is to approve: by what the tools say of themselves that would be called.

    In a room a server's tool has the server's name in its own. What others than servers offer,
    nobody knows, and no person can have the name of a server.
    """
    kind = parse(one.kind)
    if kind.method != wire.TOOLS_CALL:
        return risk_of_method(kind.method or "")
    tool = kind.context or ""
    if one.to == (GATEWAY,) and tool == chat.TOOL:
        return "acts"
    named = [tool if tool.startswith(f"{server}:") else "" for server in one.to] or [""]
    return riskiest(*(risk_of_tool(call, name) for name in named))


def with_risk(call: Call, view: ProposalView) -> ProposalView:
    """A proposal with how risky it is."""
    return replace(view, risk=risk_of_proposal(call, view))
