"""Names and URIs of a server's as they are here, and back.

A tool is `ns:` and its own name in snake_case. A URI stays within `ns://`: one of the server's own
scheme `ns` is what it was, and one of another scheme follows it whole, save for its colon:

    file:///a/b   →  ns://file///a/b
    urn:isbn:1    →  ns://urn/:isbn:1     one without an authority keeps its colon
    notes/a       →  ns://-/notes/a       one without a scheme

That is the canonical URI: rights, rooms and the audit log know it. Clients are shown one that obeys
the grammar of names as well, and may use either:

    file:///a/B   →  ns://file/-/-/a/--b      `-` is an empty segment, `--b` is `B`
    urn:isbn:1    →  ns://uri/-/urn--03aisbn--03a1

One of scheme `ns` that looks like one of these is treated like another scheme's, so every URI has
one form here, and none has two meanings.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from folkmoot.core.errors import PatternSyntax
from folkmoot.core.glob import glob
from folkmoot.gateway.model import Definition
from folkmoot.gateway.wire_uris import WHOLE, is_wire, read_wire, write_wire
from folkmoot.names.nearest import snake_case

MOST_NAME: Final = 256
"""Characters a server's own name for a tool or prompt may have."""

_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*"
_URI: Final = re.compile(rf"({_SCHEME}):(.*)", re.DOTALL)
_MAPPED: Final = re.compile(rf"(?:({_SCHEME})/([/:])|-/)(.*)", re.DOTALL)
_HERE: Final = "://"
_COLONS: Final = {"/": "://", ":": ":"}

APP: Final = "ui://"
"""The scheme of MCP Apps: clients take no other, so on the wire it is `ui://ns/…`."""


def exposed_uri(namespace: str, own: str) -> str:
    """The canonical URI of a server's own URI, or of a template."""
    begin = namespace + _HERE
    if own.startswith(begin) and _is_natural(own, len(begin)):
        return own
    parts = _URI.fullmatch(own)
    if parts is None:
        return f"{begin}-/{own}"
    scheme, rest = parts[1], parts[2]
    return f"{begin}{scheme}{rest}" if rest.startswith("//") else f"{begin}{scheme}/:{rest}"


def _is_natural(own: str, start: int) -> bool:
    """Whether a URI of the namespace's own scheme looks like none that was mapped."""
    return _MAPPED.fullmatch(own, start) is None and not is_wire(own, start)


def own_uri(namespace: str, uri: str) -> str | None:
    """The server's own URI of one that is canonical here; None for one that is not."""
    begin = namespace + _HERE
    if not uri.startswith(begin):
        return None
    own = _undone(uri, begin)
    # A second spelling of the same URI would be judged by other rights.
    return own if exposed_uri(namespace, own) == uri else None


def _undone(uri: str, begin: str) -> str:
    mapped = _MAPPED.fullmatch(uri, len(begin))
    if mapped is None:
        return uri
    scheme, separator, rest = mapped.groups()
    return str(rest) if scheme is None else f"{scheme}{_COLONS[separator]}{rest}"


def shown_uri(namespace: str, own: str, *, template: bool = False) -> str:
    """A server's own URI, or a template, as it is shown to clients.

    One of its own scheme stays as it is, and an app's keeps the scheme that clients look for.
    """
    if own.startswith(APP):
        return f"{APP}{namespace}/{own[len(APP) :]}"
    if exposed_uri(namespace, own) == own:
        return own
    return f"{namespace}{_HERE}{write_wire(own, template=template)}"


def canonical_uri(uri: str, namespaces: Container[str]) -> str | None:
    """The canonical form of a URI as a client has it; None if it is none of these namespaces'.

    To be asked before rights are: a client that fills in a template may spell one differently.
    """
    scheme, separator, rest = uri.partition(_HERE)
    if separator and scheme in namespaces:
        own = read_wire(rest)
        return exposed_uri(scheme, _undone(uri, scheme + _HERE) if own is None else own)
    if not uri.startswith(APP):
        return None
    namespace, slash, rest = rest.partition("/")
    return exposed_uri(namespace, APP + rest) if slash and namespace in namespaces else None


def canonical_pattern(pattern: str, namespaces: Container[str]) -> str:
    """A capability's pattern as rights know it, where its URI is written as clients are shown it.

    Raises `PatternSyntax` where a `*` stands before it is clear which scheme is meant.
    """
    base, colon, context = pattern.partition(":")
    scheme, separator, rest = context.partition(_HERE)
    if not colon or not separator:
        return pattern
    if context.startswith(APP):
        return f"{base}:{canonical_uri(context, namespaces) or context}"
    before_star = rest.partition("*")[0]
    if is_wire(rest):
        whole = rest.startswith(f"{WHOLE}/-/") and "*" in rest
        unclear = whole and _URI.match(read_wire(before_star) or "") is None
    else:
        unclear = "/" not in before_star and "/-/" in rest
    if unclear:
        raise PatternSyntax(
            f"{context} does not say which scheme it speaks of; write {scheme}://* or name one."
        )
    canonical = canonical_uri(context, (scheme,)) if is_wire(rest) else None
    return f"{base}:{canonical or context}"


def canonical_name(namespace: str, own: str) -> str:
    """The canonical name of a server's own, which may begin with `ns:` already."""
    return f"{namespace}:{snake_case(own.removeprefix(f'{namespace}:'))}"


class Exposed(Struct, frozen=True):
    """What can be shown of what a server lists, by canonical name, and what is wrong with it."""

    by_name: dict[str, Definition]
    faults: tuple[str, ...] = ()


def exposed_names(
    namespace: str, definitions: Iterable[Any], *, what: str, patterns: Sequence[str] = ()
) -> Exposed:
    """Tools or prompts by their canonical names; `what` names one in a fault.

    Those that no pattern speaks of are left out, and so are all that would get the same name.
    """
    allowed = {pattern: glob(pattern).matches for pattern in patterns}
    unmet = set(patterns)
    groups: dict[str, list[Definition]] = {}
    faults: list[str] = []
    for definition in definitions:
        own = definition.get("name") if isinstance(definition, dict) else None
        if not isinstance(own, str) or not own or len(own) > MOST_NAME:
            faults.append(f"A {what} of {namespace} has no usable name and is not shown.")
            continue
        canonical = canonical_name(namespace, own)
        if allowed:
            names = (canonical[len(namespace) + 1 :], own, canonical)
            met = {each for each, matches in allowed.items() if any(map(matches, names))}
            if not met:
                continue
            unmet -= met
        same = groups.setdefault(canonical, [])
        # A page that was drained while the list changed may repeat what another had.
        if definition not in same:
            same.append(definition)
    for canonical, same in groups.items():
        if len(same) > 1:
            faults.append(_collision(canonical, [each["name"] for each in same], what))
    faults += (
        f"No {what} of {namespace} matches {pattern!r}, which its settings list."
        for pattern in patterns
        if pattern in unmet
    )
    return Exposed(
        {canonical: same[0] for canonical, same in groups.items() if len(same) == 1},
        tuple(faults),
    )


def _collision(canonical: str, owns: list[str], what: str) -> str:
    named = " and ".join(repr(own) for own in sorted(owns)[:5])
    return f"The {what}s {named} would all be called {canonical}, so none of them is shown."
