"""What someone may do who came with a credential: the account's rights, narrowed by its scope."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.capability import Rights
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.scopes import ALL, OPERATE, Need
from folkmoot.mcp.wire import TOOLS_CALL

if TYPE_CHECKING:
    from folkmoot.core.capability import Capability, Source
    from folkmoot.core.scopes import Scope

INBOX: Final = "mmp://mailboxes/inbox"
SAME_AS_TOOL: Final[Mapping[str, str]] = {INBOX: "msg/digest"}
"""Resources of the hub's own, and the tools that answer the same."""
PAGES: Final = "ui"
"""The namespace of the hub's own apps: pages that are the same for everyone."""
TOOLS: Final = "tools"
"""The scope of all that servers behind the hub have."""
SHOWN: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
"""What a scope is for, as far as a refusal repeats it."""


# To look a method of a base class up costs more than a part of what it does.
_allows: Final = Rights.allows

EVERYTHING: Final = Need(ALL)
"""What an operation needs of which nothing is known."""
NO_NEEDS: Final[Mapping[str, Need]] = {}


class Scoped(Rights):
    """The rights of an account as one of its credentials has them.

    To run the hub, an account's own rights do not help: that right is the credential's alone, and
    a deny takes it away.
    """

    __slots__ = ("_narrow", "_needs", "_operating", "scope")

    def __init__(self, rights: Rights, scope: Scope, needs: Mapping[str, Need]) -> None:
        # What is compiled and found is the same whatever the scope: it is shared.
        for name in Rights.__slots__:
            setattr(self, name, getattr(rights, name))
        self.scope = scope
        self._needs = needs
        self._narrow = not scope.is_whole
        self._operating = operating(needs)

    @property
    def has_denies(self) -> bool:
        """Whether anything is denied, or outside the scope."""
        return self._denying or self._narrow

    def missing(self, kind: Kind, payload: Any = None) -> str:
        """The scope that a request needs and the credential has not; empty where it has all."""
        need = self._need(kind, payload)
        if need is None or self.scope.has(*need):
            return ""
        name, about = need
        return f"{name}:{about}" if SHOWN.fullmatch(about) else name

    def allows(self, kind: Kind, payload: Any = None, to: Sequence[str] = ()) -> bool:
        """Whether the account may do it, and the credential has it in its scope."""
        if kind.context in self._operating and kind.method == TOOLS_CALL:
            return self.scope.has(OPERATE) and not self.denies(kind, payload, to)
        if self._narrow and self.missing(kind, payload):
            return False
        return _allows(self, kind, payload, to)

    def may_deny(self, kind: Kind) -> bool:
        """Whether a request of this kind may be denied, or outside the scope."""
        return self._narrow or super().may_deny(kind)

    def lists(self, kind: Kind) -> bool:
        """Whether someone is shown what they may ask for, perhaps only about some rooms."""
        return self.in_scope(kind) and super().allows(kind)

    def in_scope(self, kind: Kind) -> bool:
        """Whether the scope has a request of this kind with some arguments."""
        need = self._need(kind, None)
        if need is None or self.scope.has(*need):
            return True
        known = self._needs.get(kind.context or "")
        return known is not None and bool(known.about) and self.scope.may_have(known.scope)

    def covers(self, source: Source | Capability) -> bool:
        """Whether all that a capability allows is held; a narrow scope is asked each by each."""
        return not self._narrow and super().covers(source)

    def _need(self, kind: Kind, payload: Any) -> tuple[str, str] | None:
        """The scope that a request needs, and what for; None where it needs none.

        What is said in a room is judged as the operation that it is.
        """
        context = kind.context
        if context is None or kind.root != "mcp.request":
            return None
        name = context if kind.method == TOOLS_CALL else SAME_AS_TOOL.get(context, "")
        need = self._needs.get(name)
        if need is None:
            namespace, colon, _ = context.partition(":")
            if kind.method == TOOLS_CALL:
                return (TOOLS, namespace) if colon else EVERYTHING
            # What has no namespace is nothing: a server is asked by its canonical names.
            return (TOOLS, namespace) if colon and namespace != PAGES else None
        if not need.scope:
            return None
        return need.scope, argument(payload, need.about) if need.about else ""


def argument(payload: Any, name: str) -> str:
    """An argument of a call, if it is text."""
    params = payload.get("params") if type(payload) is dict else None
    arguments = params.get("arguments") if type(params) is dict else None
    value = arguments.get(name) if type(arguments) is dict else None
    return value if type(value) is str else ""


@lru_cache(maxsize=1024)
def some_tool(namespace: str) -> Kind:
    """The call of a tool of a server, to ask for rights that all of it needs."""
    return parse(f"mcp.request.{TOOLS_CALL}:{namespace}:-")


def operating(needs: Mapping[str, Need]) -> frozenset[str | None]:
    """The operations that run the hub."""
    return frozenset(name for name, need in needs.items() if need.scope == OPERATE)
