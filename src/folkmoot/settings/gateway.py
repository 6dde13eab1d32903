"""The settings of the gateway as a whole; each server has a table of its own in `backends`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from folkmoot.settings.section import FilePaths, Section

NewTools: TypeAlias = Literal["hold", "list"]


class GatewaySettings(Section, frozen=True, kw_only=True):
    """What goes for all servers behind the hub."""

    mcp_servers: Annotated[
        tuple[FilePaths, ...],
        Meta(
            max_length=32,
            description="Files in the format of MCP clients, with `mcpServers` or `servers` in "
            "them, whose servers are added as backends. A relative path is "
            "relative to the settings file.",
        ),
    ] = ()
    page_size: Annotated[
        int,
        Meta(
            ge=10,
            le=10_000,
            description="How many tools, resources or prompts are on one page of a list. Some "
            "clients read only the first page.",
        ),
    ] = 1000
    audit_arguments: Annotated[
        Literal["hash", "record", "none"],
        Meta(
            description="What the audit log records of a call's arguments: a hash, which is "
            "the same for equal arguments; the arguments themselves; or nothing."
        ),
    ] = "hash"
    new_tools: Annotated[
        NewTools,
        Meta(
            description="What happens to tools that a server adds after its first listing: "
            "held back until an operator accepts them, or listed. Those of a "
            "trusted server are listed."
        ),
    ] = "hold"
    edit_from_web: Annotated[
        bool,
        Meta(
            description="Whether operators can add, test and remove servers over the network, in "
            "the console for example, with the scope `operate` and a token given once more. That "
            "runs programs on this machine. When off, only `folkmoot backends` and the hub's own "
            "socket can."
        ),
    ] = False
