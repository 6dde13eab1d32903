"""The grammar of names and its rules: what is wrong with a name, by which rule and where."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import NamedTuple

MOST_NAMESPACE = 20
MOST_TOOL = 128
"""As long as MCP lets the name of a tool be; the namespace comes on top."""
MOST_URI = 2048

RULES = MappingProxyType(
    {
        "missing-namespace": "A name begins with a namespace.",
        "namespace-characters": "A namespace has lower-case letters and digits only.",
        "namespace-start": "A namespace begins with a letter.",
        "namespace-length": f"A namespace has 3 to {MOST_NAMESPACE} characters.",
        "foreign-namespace": "A name is in the namespace that is expected.",
        "reserved-namespace": "A namespace is none of the reserved names.",
        "taken-namespace": "A namespace is nobody else's.",
        "slug-characters": (
            "A slug has letters, digits, hyphens, dots and underscores, and no scope before it."
        ),
        "tool-characters": "A tool's name has lower-case letters, digits and underscores only.",
        "tool-start": "A tool's name begins with a letter.",
        "tool-length": f"A tool's name has 2 to {MOST_TOOL} characters.",
        "uri-separator": "A resource URI has :// after its namespace.",
        "uri-length": f"A resource URI has at most {MOST_URI:,} characters.",
        "type-characters": "A resource type has lower-case letters, digits and underscores only.",
        "type-start": "A resource type begins with a letter.",
        "type-length": "A resource type has at least 2 characters.",
        "id-empty": "A resource URI has an id after its type, and no part of it is empty.",
        "id-characters": (
            "A resource id has lower-case letters, digits, hyphens, dots and underscores only."
        ),
        "id-dots": "No part of a resource id is . or .. alone.",
        "query-pair": "A query is key=value pairs joined by &.",
        "query-key": "The key of a query has letters, digits, hyphens, dots and underscores only.",
        "query-repeated": "A query has each key once.",
        "query-value": "The value of a query is percent-encoded UTF-8.",
        "version-syntax": "A version is numbers joined by dots, such as 1.4.0.",
        "removal-order": "A name is removed in a later release than it is deprecated in.",
    }
)
"""What must be so, by the rule's id."""


RESERVED_NAMES = frozenset(
    {"ask", "gateway", "system", "folkmoot", "mmp", "msg", "room", "chat", "file", "http", "https"}
)
"""Neither a person's handle nor the namespace of a server."""


HANDLE = re.compile(r"[a-z][a-z0-9_]{2,19}")
HERE = "@localhost"
"""What a handle of this hub may end in, as one of another hub would in its name."""


def parse_handle(text: str) -> str | None:
    """The handle as it is stored, or nothing where the text is none.

    `@Alice` and `@alice@localhost` are `alice`.
    """
    # Beyond ASCII some letters, such as the Kelvin sign, have a plain one as their lower case.
    if not text.isascii():
        return None
    handle = text.removeprefix("@").lower().removesuffix(HERE)
    return handle if HANDLE.fullmatch(handle) else None


PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def encoded(value: str) -> str | None:
    """The value as it stands in a query; None for text that UTF-8 cannot write."""
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return None
    return "".join(chr(byte) if byte in PLAIN else f"%{byte:02X}" for byte in raw)


def decoded(text: str) -> str | None:
    """The value behind an ASCII text of a query; None where its bytes are not UTF-8."""
    try:
        raw = ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode("ascii"))
        return raw.decode()
    except UnicodeError:
        return None


class Fault(NamedTuple):
    """A rule that a name breaks, and the place where it does."""

    rule: str
    position: int


class WordGrammar(NamedTuple):
    """A word of the grammar: a letter, then more of its characters."""

    name: str
    characters: re.Pattern[str]
    least: int
    most: int


NAMESPACE = WordGrammar("namespace", re.compile(r"[a-z0-9]*"), 3, MOST_NAMESPACE)
TOOL = WordGrammar("tool", re.compile(r"[a-z0-9_]*"), 2, MOST_TOOL)
TYPE = WordGrammar("type", re.compile(r"[a-z0-9_]*"), 2, MOST_URI)

LETTER = re.compile(r"[a-z]")
SEGMENT = re.compile(r"[a-z0-9_.-]*")
KEY = re.compile(r"[A-Za-z0-9_.-]*")
# Of what RFC 3986 lets stand in a query, all but what some readers take for something else.
VALUE = re.compile(r"(?:[A-Za-z0-9._~!$'()*,/:?@-]|%[0-9A-Fa-f]{2})*")
EXPRESSION = re.compile(r"\{([+/.]?)[A-Za-z0-9_.,:*]+\}")
QUERY_EXPRESSION = re.compile(r"\{[?&][A-Za-z0-9_.,:*]+\}\Z")


def part_fault(part: WordGrammar, text: str, at: int = 0) -> Fault | None:
    """What is wrong with a namespace, the own name of a tool or a resource type."""
    seen = text[: part.most + 1]
    fits = _fitting(part.characters, seen)
    if fits and not LETTER.match(seen):
        return Fault(f"{part.name}-start", at)
    if fits < len(seen):
        return Fault(f"{part.name}-characters", at + fits)
    if not part.least <= len(text) <= part.most:
        return Fault(f"{part.name}-length", at + min(len(text), part.most))
    return None


def tool_name_fault(name: str) -> Fault | None:
    """What is wrong with `ns:tool`."""
    namespace, separator, tool = name.partition(":")
    if not (separator and namespace):
        return Fault("missing-namespace", 0)
    return part_fault(NAMESPACE, namespace) or part_fault(TOOL, tool, len(namespace) + 1)


def resource_uri_fault(uri: str, expected_namespace: str | None = None) -> Fault | None:
    """What is wrong with `ns://type/id…[?k=v&…]`.

    `expected_namespace` only helps to tell a missing namespace from a missing separator.
    """
    if len(uri) > MOST_URI:
        return Fault("uri-length", MOST_URI)
    namespace, separator, rest = uri.partition("://")
    if not separator:
        return _without_separator(uri, expected_namespace)
    if not namespace:
        return Fault("missing-namespace", 0)
    path, question, query = rest.partition("?")
    kind, _, identifier = path.partition("/")
    at = len(namespace) + len(separator)
    return (
        part_fault(NAMESPACE, namespace)
        or part_fault(TYPE, kind, at)
        or id_fault(identifier, min(at + len(kind) + 1, at + len(path)))
        or (query_fault(query, at + len(path) + 1) if question else None)
    )


def resource_template_fault(template: str, expected_namespace: str | None = None) -> Fault | None:
    """What is wrong with a URI that has `{…}` in its id or its query."""
    return resource_uri_fault(_filled(template[: MOST_URI + 1]), expected_namespace)


def id_fault(text: str, at: int = 0) -> Fault | None:
    """What is wrong with a resource id of one or several segments."""
    for segment in text.split("/"):
        if not segment:
            return Fault("id-empty", at)
        if segment in {".", ".."}:
            return Fault("id-dots", at)
        fits = _fitting(SEGMENT, segment)
        if fits < len(segment):
            return Fault("id-characters", at + fits)
        at += len(segment) + 1
    return None


def query_fault(text: str, at: int = 0) -> Fault | None:
    """What is wrong with a query, without its question mark."""
    seen = set()
    for pair in text.split("&"):
        key, equals, value = pair.partition("=")
        if not (key and equals):
            return Fault("query-pair", at)
        if (fits := _fitting(KEY, key)) < len(key):
            return Fault("query-key", at + fits)
        if key in seen:
            return Fault("query-repeated", at)
        seen.add(key)
        start = at + len(key) + 1
        if (fits := _fitting(VALUE, value)) < len(value):
            return Fault("query-value", start + fits)
        if decoded(value) is None:
            return Fault("query-value", start)
        at += len(pair) + 1
    return None


def _fitting(characters: re.Pattern[str], text: str) -> int:
    """How many characters at the beginning are fine."""
    found = characters.match(text)
    return found.end() if found else 0


def _without_separator(uri: str, expected: str | None) -> Fault:
    """`myproject/templates/x` lacks its `://`, `templates/x` its namespace."""
    head, colon, _ = uri.partition(":")
    if colon and not part_fault(NAMESPACE, head):
        return Fault("uri-separator", len(head))
    head, slash, rest = uri.partition("/")
    if slash and (head == expected or ("/" in rest and not part_fault(NAMESPACE, head))):
        return Fault("uri-separator", len(head))
    return Fault("missing-namespace", 0)


def _filled(template: str) -> str:
    """The template with text of equal length in place of its expressions.

    Namespace and type stay as they are: a template says what it is a template of.
    """
    namespace, separator, rest = template.partition("://")
    tail = QUERY_EXPRESSION.sub("", rest)
    head = re.match(r"[^/{?]*", tail)
    kind = head[0] if head else ""
    opened = re.match(r"[/?]|\{/", tail[len(kind) :])
    if not (separator and opened):
        return f"{namespace}{separator}{tail}"
    filled = EXPRESSION.sub(
        lambda found: found[1].replace("+", "x").ljust(len(found[0]), "x"), tail[len(kind) :]
    )
    return f"{namespace}{separator}{kind}{filled}"
