"""How risky it is to let something be done, for whoever is to decide about it.

    destroys    it says that it may destroy something
    unknown     it does not say what it does; MCP takes such a tool for one that may destroy
    acts        it adds or changes something beyond the server that does it
    changes     it adds or changes something there
    reads       it changes nothing

What a tool says of itself are its annotations. They are its server's word, and nothing proves it.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from folkmoot.mcp import wire

Risk: TypeAlias = Literal["destroys", "unknown", "acts", "changes", "reads"]
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
