"""The one error of names, with everything that helps to mend the name."""

from __future__ import annotations

from typing import NoReturn

from folkmoot.core.errors.gateway import InvalidName
from folkmoot.names.faults import Fault
from folkmoot.names.rules import RULES

MOST_SHOWN = 80
PLACELESS = frozenset({"missing-namespace", "reserved-namespace", "taken-namespace"})
"""Rules that a name breaks as a whole."""


def refuse(message: str, name: str, fault: Fault, nearest: str | None) -> NoReturn:
    """Raise the error of a fault: the message, the rule, the place and the nearest name."""
    if nearest == name:
        nearest = None
    broken = RULES[fault.rule].rstrip(".")
    proposal = f" Did you mean {shown(nearest)}?" if nearest else ""
    raise InvalidName(
        f"{message}. {broken} (rule {fault.rule}{_where(name, fault)}).{proposal}",
        name=shown(name) if name else "",
        rule=fault.rule,
        position=fault.position,
        nearest=nearest,
    )


def _where(name: str, fault: Fault) -> str:
    if fault.rule in PLACELESS:
        return ""
    found = name[fault.position : fault.position + 1]
    return f"; character {fault.position + 1} is {found!r}" if found else "; at the end"


def shown(text: str) -> str:
    """The beginning of a text as an error may show it, on one line."""
    if not text:
        return "''"
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:MOST_SHOWN])
    return plain if len(text) <= MOST_SHOWN >= len(plain) else f"{plain[: MOST_SHOWN - 1]}…"
