"""The nearest valid name: what someone who wrote an invalid one may have meant.

Each answer is valid, and there is none where nothing of the name can be kept.
"""

from __future__ import annotations

import re

from folkmoot.names.faults import (
    NAMESPACE,
    TYPE,
    id_fault,
    part_fault,
    query_fault,
    resource_uri_fault,
    tool_name_fault,
)
from folkmoot.names.percent import decoded, encoded
from folkmoot.names.reserved import RESERVED_NAMES
from folkmoot.names.rules import MOST_NAMESPACE, MOST_URI
from folkmoot.names.shape import BOUNDARY, folded, snake_case, words

MOST_READ = 512
"""Longer texts are no name that someone mistyped."""
ADDED = "tools"
"""Makes a namespace of one that is too short, or reserved: `acmetools`."""

ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}")
GAPS = re.compile(r"[^a-z0-9_.]+")
KEY_GAPS = re.compile(r"[^A-Za-z0-9_.-]+")


def nearest_namespace(text: str) -> str | None:
    """A valid namespace near to the text, and none of the reserved ones.

    One that is too long is abbreviated: by its initials, else by shorter words.
    """
    if len(text) > MOST_READ:
        return None
    if not part_fault(NAMESPACE, text) and text not in RESERVED_NAMES:
        return text
    parts = words(folded(text))
    while parts and not (first := parts[0].lstrip("0123456789")):
        parts = parts[1:]
    if not parts:
        return None
    parts[0] = first
    whole = "".join(parts)
    for wanted in (whole, f"{whole}{ADDED}", *_abbreviations(parts)):
        if not part_fault(NAMESPACE, wanted) and wanted not in RESERVED_NAMES:
            return wanted
    return None


def _abbreviations(parts: list[str]) -> list[str]:
    """`mas` for `my-awesome-server`; words that are cut to one length where those are too few."""
    initials = "".join(part[0] for part in parts)[:MOST_NAMESPACE]
    longest = MOST_NAMESPACE
    while sum(min(len(part), longest) for part in parts) > MOST_NAMESPACE and longest > 1:
        longest -= 1
    return [initials, "".join(part[:longest] for part in parts)[:MOST_NAMESPACE]]


def nearest_tool_name(name: str, expected_namespace: str | None = None) -> str | None:
    """A valid `ns:tool` near to the name, in the expected namespace where one is given."""
    if len(name) > MOST_READ:
        return None
    head, tail = _split(name, expected_namespace)
    namespace = expected_namespace or _nearest_head(head)
    tool = _nearest_word(tail)
    wanted = f"{namespace}:{tool}"
    return None if not (namespace and tool) or tool_name_fault(wanted) else wanted


def nearest_resource_uri(uri: str, expected_namespace: str | None = None) -> str | None:
    """A valid `ns://type/id` near to the URI, in the expected namespace where one is given."""
    if len(uri) > MOST_URI:
        return None
    head, path, query = _split_uri(uri, expected_namespace)
    namespace = expected_namespace or _nearest_head(head)
    kind, *segments = [part for part in path.split("/") if part] or [""]
    type_ = _nearest_word(kind) if part_fault(TYPE, kind) else kind
    identifier = "/".join(filter(None, map(_nearest_segment, segments)))
    if not (namespace and type_ and identifier):
        return None
    wanted = f"{namespace}://{type_}/{identifier}"
    if pairs := _nearest_pairs(query):
        wanted += f"?{pairs}"
    return None if resource_uri_fault(wanted) else wanted


def _split(name: str, expected: str | None) -> tuple[str, str]:
    """The namespace and the rest of a tool's name, also where `/` or `.` stands between them."""
    head, colon, tail = name.partition(":")
    if colon:
        return head, tail
    found = re.search(r"[/.]", name)
    head = name[: found.start()] if found else ""
    if found and (head == expected or (not expected and not part_fault(NAMESPACE, head))):
        return head, name[found.end() :]
    return "", name


def _nearest_head(text: str) -> str | None:
    return nearest_namespace(text) if part_fault(NAMESPACE, text) else text


def _split_uri(uri: str, expected: str | None) -> tuple[str, str, str]:
    """Namespace, path and query, also where something else than `://` stands between them."""
    address, _, query = uri.partition("?")
    fault = resource_uri_fault(uri, expected)
    if fault and fault.rule == "missing-namespace":
        return "", address.lstrip(":"), query
    found = re.search(r":/*|/+", address)
    if not found:
        return "", address, query
    return address[: found.start()], address[found.end() :], query


def _nearest_word(text: str) -> str | None:
    """A tool or a type near to the text, if anything in it can be kept."""
    return snake_case(text) if words(folded(text)) else None


def _nearest_segment(text: str) -> str:
    """A segment of an id: words of mixed case and what is between them are joined by hyphens."""
    if not id_fault(text):
        return text
    plain = BOUNDARY.sub("-", ESCAPES.sub(" ", folded(text))).lower()
    return GAPS.sub("-", plain).strip("-") if plain.strip(".") else ""


def _nearest_pairs(query: str) -> str:
    pairs: dict[str, str] = {}
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        written: str | None = value
        if query_fault(pair):
            key = KEY_GAPS.sub("_", key).strip("_")
            plain = decoded(value) if value.isascii() else value
            written = encoded(value if plain is None else plain)
        if key and written is not None:
            pairs.setdefault(key, written)
    return "&".join(f"{key}={value}" for key, value in pairs.items())
