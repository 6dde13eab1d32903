"""The nouns: what a server offers, and what of it is shown under which names."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

What: TypeAlias = Literal["tools", "resources", "templates", "prompts"]
Definition: TypeAlias = dict[str, Any]
"""A tool, resource, template or prompt, as a server lists it."""


class Inventory(Struct, frozen=True, kw_only=True):
    """Everything one server lists, every page of it, as it said it."""

    tools: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    prompts: tuple[Definition, ...] = ()
    capabilities: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    """Its `serverInfo`."""
    instructions: str = ""
    stateless: bool = False
    """Whether it speaks the stateless era."""
    faults: tuple[str, ...] = ()
    """What could not be listed or was left out, a sentence each."""
    partial: frozenset[What] = frozenset()
    """The lists that were not read to their end."""
    findings: dict[What, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """What the descriptions of some entries hold that they should not, by their own names."""


class ToolEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A tool of a server's as people know it here."""

    canonical: str
    """`ns:tool`"""
    namespace: str
    own: str
    """The server's own name for it."""
    definition: Definition
    """As shown, but for `name`, which each style spells its own way."""
    schema: dict[str, Any]
    """The pinned `inputSchema`."""
    repeatable: bool = False
    """Annotated as read-only or idempotent."""
    mirrored: bool = False
    """Whether its schema wants some arguments repeated in `Mcp-Param-…` headers."""
    quarantined: Literal["", "changed", "new"] = ""
    """Why it is held back until it is accepted: not listed, and calls are refused."""
    task_support: Literal["", "optional", "required"] = ""
    """Whether it may, or must, be called as a task."""


class PromptEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A prompt of a server's as people know it here."""

    canonical: str
    namespace: str
    own: str
    definition: Definition


class ResourceEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A resource or a template of a server's: `uri` is its canonical URI, or the template."""

    uri: str
    namespace: str
    own: str
    definition: Definition
