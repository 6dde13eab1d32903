"""Which tools there are, as far as a client can tell: the others are neither listed nor called."""

from __future__ import annotations

import re
from typing import Any, Final

from folkmoot.core.errors import BlockedByInterceptor
from folkmoot.core.glob import glob
from folkmoot.core.verdict import CONTINUE, Block, Verdict
from folkmoot.proxy.interceptors.base import Guard, Means, OptionInvalid, Options, shown
from folkmoot.proxy.interceptors.view import CALL, LIST, REQUEST, RESPONSE, Canonical, Key, View

_SEPARATOR: Final = re.compile(r"[/:]")
"""What stands between a namespace and a name; in the safe spelling it is an underscore."""


class ToolOptions(Options, frozen=True, kw_only=True):
    """Globs over the names of tools; a deny wins over an allow."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class Tools(Guard):
    """Leaves tools out of lists and stops calls of them."""

    def __init__(self, options: ToolOptions, means: Means) -> None:
        if options.allow is None and not options.deny:
            raise OptionInvalid("needs 'allow' or 'deny'")
        allow = options.allow
        self._allowed = None if allow is None else Names(allow, means.canonical)
        self._denied = Names(options.deny, means.canonical)

    def concerns(self, key: Key) -> bool:
        """Calls, and answers that list tools."""
        return (key.root, key.method) in ((REQUEST, CALL), (RESPONSE, LIST))

    def check(self, view: View) -> Verdict:
        """Stop a call, or leave out what is not to be seen."""
        if view.key.root == REQUEST:
            if self._may(view.context):
                return CONTINUE
            return Block(
                BlockedByInterceptor(f"The tool {shown(view.context)} is not allowed here.")
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


class Names:
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
