"""Names and URIs of backends: canonical here, as clients see them, and back.

A server may take a URI for another one: no spelling of it slips past a right.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.glob import glob
from folkmoot.core.kinds import parse
from folkmoot.core.paths import DOTS, is_unclear
from folkmoot.gateway.limits import MAX_SERVER_NAME, MAX_URI_ESCAPES
from folkmoot.gateway.model import Definition
from folkmoot.names.grammar import EXPRESSION, QUERY_EXPRESSION, query_fault
from folkmoot.names.nearest import snake_case

if TYPE_CHECKING:
    from folkmoot.core.capability import Rights
    from folkmoot.core.kinds import Kind


WHOLE: Final = "uri"
"""The type of a URI that stands there whole, since its scheme is no type or nothing follows it."""

_WIRE: Final = re.compile(r"([a-z][a-z0-9_]+)/-/(.+)", re.DOTALL)
_WIRE_SCHEME: Final = re.compile(r"([a-z][a-z0-9]+)://(.*)", re.DOTALL)
_SLASH: Final = re.compile(r"/(?![^{}]*\})")
_HYPHEN: Final = r"-(?=[^a-z0-9_.])"
"""A hyphen before something that is written with hyphens, or before another one."""
_WRITTEN: Final = re.compile(rf"{_HYPHEN}|[^a-z0-9_.-]")
_WRITTEN_IN_TEMPLATE: Final = re.compile(
    rf"({EXPRESSION.pattern}|{QUERY_EXPRESSION.pattern})|{_HYPHEN}|[^a-z0-9_.-]"
)
_READ: Final = re.compile(r"((?:--0[0-9a-f]{2})+)|--([a-z])")
_EMPTY: Final = "-"
_NO_SEGMENT: Final = frozenset({"-", ".", ".."})
"""Segments that the grammar does not have, or that stand for something else."""


def is_wire(uri: str, start: int = 0) -> bool:
    """Whether what follows `ns://`, at `start`, looks as if it was written by `write_wire`."""
    return _WIRE.fullmatch(uri, start) is not None


def write_wire(own: str, *, template: bool = False) -> str:
    """What follows `ns://` for a URI or a template of another scheme."""
    found = _WIRE_SCHEME.fullmatch(own)
    kind, rest = (WHOLE, own) if found is None or found[1] == WHOLE else found.groups()
    path, query = _without_query(rest, template=template)
    segments = [_segment(each, template=template) for each in _segments(path, template=template)]
    return f"{kind}/-/{'/'.join(segments)}{query}"


def read_wire(text: str) -> str | None:
    """The server's own URI of what follows `ns://`; None if it was not written by `write_wire`.

    Characters that are not escaped stand for themselves: clients fill in templates as they like.
    """
    found = _WIRE.fullmatch(text)
    if found is None:
        return None
    path, mark, query = found[2].partition("?")
    segments = ("" if each == _EMPTY else _READ.sub(_plain, each) for each in path.split("/"))
    rest = f"{'/'.join(segments)}{mark}{query}"
    return rest if found[1] == WHOLE else f"{found[1]}://{rest}"


def _without_query(rest: str, *, template: bool) -> tuple[str, str]:
    """The path, and the query with its `?` where it obeys the grammar."""
    path, mark, query = rest.partition("?")
    filled = EXPRESSION.sub("x", query) if template else query
    inside = template and path.rfind("{") > path.rfind("}")
    if not mark or inside or query_fault(filled) is not None:
        return rest, ""
    return path, f"?{query}"


def _segments(path: str, *, template: bool) -> list[str]:
    return _SLASH.split(path) if template else path.split("/")


def _segment(text: str, *, template: bool) -> str:
    if not text:
        return _EMPTY
    if text in _NO_SEGMENT:
        return "".join(map(_escaped, text))
    if template:
        return _WRITTEN_IN_TEMPLATE.sub(lambda found: found[1] or _escaped(found[0]), text)
    return _WRITTEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    if "A" <= character <= "Z":
        return f"--{character.lower()}"
    return "".join(f"--0{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _plain(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2].upper()
    try:
        return bytes.fromhex(found[1].replace("--0", "")).decode()
    except UnicodeDecodeError:
        return found[0]


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
    """The server's own form of a canonical URI; None for any other."""
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
    """A capability's pattern with its URI in canonical form.

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
        raise e.PatternSyntax(
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
        if not isinstance(own, str) or not own or len(own) > MAX_SERVER_NAME:
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


SEGMENTS: Final = re.compile(r"[/\\?#;]")
NEEDLESS: Final = re.compile(r"%(?:2[DE]|3\d|[46][1-9A-F]|5[0-9AF]|7[0-9AE])", re.IGNORECASE)
"""A character written as an escape that means the same when it is not."""
_OTHER_SCHEME: Final = re.compile(r"[a-z0-9]+://([A-Za-z][A-Za-z0-9+.-]*)/[/:]")
_FILE: Final = re.compile(r"[a-z0-9]+://file/[/:]", re.IGNORECASE)
_PLAIN_FILE: Final = re.compile(
    r"[a-z0-9]+://file//(?!localhost/)[^/?#]*(?:/(?!/)[^?#]*)?", re.IGNORECASE
)
_BEGINS: Final = (
    re.compile(r"[a-z0-9]+://"),
    re.compile(r"[a-z0-9]+://[A-Za-z][A-Za-z0-9+.-]*//"),
)
"""What stands before the path of a URI: of the backend's own scheme, and of another one."""
_SLASHES: Final = re.compile("/{2,}")
_END: Final = re.compile(r"(?<=[^:/])/*(?:[?#].*)?$", re.DOTALL)
_NOT_IN_FILE: Final = re.compile(r"(?<=.)//|%2f|%5c", re.IGNORECASE)


def has_other_spelling(uri: str) -> bool:
    """Whether a server could take a canonical URI for another, which has rights of its own."""
    if NEEDLESS.search(uri) is not None:
        return True
    scheme = _OTHER_SCHEME.match(uri)
    if scheme is not None and not scheme[1].islower():
        return True
    if _FILE.match(uri) is not None and not _is_plain_file(uri):
        return True
    *read, last = _readings(uri)
    return unquote(last) != last or any(map(_climbs, (*read, last)))


def hidden_deny(rights: Rights, kind: Kind) -> e.CapabilityDenied | None:
    """The refusal of a request whose URI means something denied once it is read as servers do."""
    try:
        denied = any(
            rights.denies(parse(f"{kind.base}:{meaning}"))
            for meaning in _meanings(kind.context or "")
        )
    except e.KindError:
        # What no right can speak of, such as a line break, nobody has a right to.
        denied = True
    told = f"{kind} leads to something that is denied to you."
    return e.CapabilityDenied(told, attempted_kind=str(kind)) if denied else None


def _readings(uri: str) -> list[str]:
    """A URI, and its forms with escapes decoded once, twice and so on."""
    found = [uri]
    while len(found) <= MAX_URI_ESCAPES and (read := unquote(found[-1])) != found[-1]:
        found.append(read)
    return found


def _meanings(uri: str) -> list[str]:
    """What else a server may take a URI for."""
    found: dict[str, None] = {}
    for read in _readings(uri):
        slashed = read.replace("\\", "/")
        for whole in (slashed, _END.sub("", slashed)):
            found[whole] = None
            for begin in _BEGINS:
                if (begun := begin.match(whole)) is not None:
                    rest = _SLASHES.sub("/", whole[begun.end() :])
                    found[f"{begun[0]}{rest}"] = found[f"{begun[0]}{rest.lstrip('/')}"] = None
    found.pop(uri, None)
    return list(found)


def _climbs(uri: str) -> bool:
    return any(
        segment in DOTS or (segment.strip(".") and is_unclear(segment))
        for segment in SEGMENTS.split(uri)
    )


def _is_plain_file(uri: str) -> bool:
    """Whether the URI of a file has no host that is this one, no doubled slash and no query."""
    if _PLAIN_FILE.fullmatch(uri) is None:
        return False
    path = uri.split("//", 2)[2]
    return _NOT_IN_FILE.search(path) is None
