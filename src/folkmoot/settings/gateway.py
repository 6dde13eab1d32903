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
            description="Files in the form MCP clients keep, with `mcpServers` or `servers` in "
            "them, whose servers stand behind the hub too. A relative path is taken from the "
            "settings file.",
        ),
    ] = ()
    page_size: Annotated[
        int,
        Meta(
            ge=10,
            le=10_000,
            description="How many tools, resources or prompts one page of a list holds. Some "
            "clients read the first page alone.",
        ),
    ] = 1000
    audit_arguments: Annotated[
        Literal["hash", "record", "none"],
        Meta(
            description="What the audit log holds of a call's arguments: a hash, by which equal "
            "ones are known again; the arguments themselves; or nothing."
        ),
    ] = "hash"
    new_tools: Annotated[
        NewTools,
        Meta(
            description="What becomes of tools that a server adds after its first inventory: held "
            "back until an operator accepts them, or listed. A trusted server's are listed."
        ),
    ] = "hold"
