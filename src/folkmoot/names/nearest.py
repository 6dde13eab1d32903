"""Suggestions: the nearest valid name, names in snake_case, and the error that has both."""

from __future__ import annotations

import re
import unicodedata
from typing import NoReturn

from folkmoot.core import errors as e
from folkmoot.names.grammar import (
    MOST_NAMESPACE,
    MOST_TOOL,
    MOST_URI,
    NAMESPACE,
    RESERVED_NAMES,
    RULES,
    TYPE,
    Fault,
    decoded,
    encoded,
    id_fault,
    part_fault,
    query_fault,
    resource_uri_fault,
    tool_name_fault,
)
from folkmoot.names.limits import MAX_GUESS, MAX_NAME, MAX_SHOWN, MAX_SLUG

VALID = re.compile(r"[a-z][a-z0-9_]+")
BOUNDARY = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])"  # createIssue
    r"|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])"  # HTTPResponse, but not URLs
)
WORD = re.compile(r"[a-z0-9]+")
LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
MARK_DIGITS = 8


def snake_case(own: str) -> str:
    """A valid tool name for any text; one that is valid already stays as it is.

    What is too long, or has letters that cannot be written in ASCII, ends in digits of its hash,
    which stay the same for as long as the name does. `tool_` goes before what cannot come first.
    """
    if len(own) <= MOST_TOOL and VALID.fullmatch(own):
        return own
    text = folded(own[:MAX_NAME])
    name = "_".join(words(text))
    foreign = any(c.isalnum() and not c.isascii() for c in text)
    lost = not name or foreign or len(own) > MAX_NAME
    if len(name) < 2 or not name[0].isalpha():
        name = f"tool_{name}".rstrip("_")
    if lost:
        name = f"{name}_{_mark(own)}"
    if len(name) > MOST_TOOL:
        name = f"{name[: MOST_TOOL - MARK_DIGITS - 1].rstrip('_')}_{_mark(own)}"
    return name


def folded(text: str) -> str:
    """The text with letters in their plain form: `é` is `e`, and `ﬁ` is `fi`."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """The words of a name in lower case, however they were joined, without what is not ASCII."""
    return WORD.findall(BOUNDARY.sub("_", text).translate(LOWER))


def _mark(own: str) -> str:
    import hashlib  # costs more than everything else here

    return hashlib.sha256(own.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_DIGITS]


PLACELESS = frozenset({"missing-namespace", "reserved-namespace", "taken-namespace"})
"""Rules that a name breaks as a whole."""


def refuse(message: str, name: str, fault: Fault, nearest: str | None) -> NoReturn:
    """Raise the error of a fault: the message, the rule, the place and the nearest name."""
    if nearest == name:
        nearest = None
    broken = RULES[fault.rule].rstrip(".")
    proposal = f" Did you mean {truncated(nearest)}?" if nearest else ""
    raise e.InvalidName(
        f"{message}. {broken} (rule {fault.rule}{_where(name, fault)}).{proposal}",
        name=truncated(name) if name else "",
        rule=fault.rule,
        position=fault.position,
        nearest=nearest,
    )


def _where(name: str, fault: Fault) -> str:
    if fault.rule in PLACELESS:
        return ""
    found = name[fault.position : fault.position + 1]
    return f"; character {fault.position + 1} is {found!r}" if found else "; at the end"


def truncated(text: str) -> str:
    """The beginning of a text as an error may show it, on one line."""
    if not text:
        return "''"
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:MAX_SHOWN])
    return plain if len(text) <= MAX_SHOWN >= len(plain) else f"{plain[: MAX_SHOWN - 1]}…"


ADDED = "tools"
"""Makes a namespace of one that is too short, or reserved: `acmetools`."""

ESCAPES = re.compile(r"%[0-9A-Fa-f]{2}")
GAPS = re.compile(r"[^a-z0-9_.]+")
KEY_GAPS = re.compile(r"[^A-Za-z0-9_.-]+")


def nearest_namespace(text: str) -> str | None:
    """A valid namespace near to the text, and none of the reserved ones.

    One that is too long is abbreviated: by its initials, else by shorter words.
    """
    if len(text) > MAX_GUESS:
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
    if len(name) > MAX_GUESS:
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


UNFIT = re.compile(r"[^A-Za-z0-9._-]")
JOINT = re.compile(r"[._-]")
SCOPED = re.compile(r"@[^/]*/(.+)")


def namespace_from_slug(slug: str) -> str:
    """`myawesomeserver` for `my-awesome-server`; raises `InvalidName` with a proposal.

    Hyphens, dots, underscores and upper case do not tell one project from another, so they go.
    Nothing else does without being asked: what is too long is never cut here.
    """
    read = slug[:MAX_SLUG]
    namespace = JOINT.sub("", read).lower()
    if fault := _fault(read, namespace):
        scoped = SCOPED.fullmatch(read)
        refuse(
            f"Invalid slug for a namespace: {truncated(slug)}",
            slug,
            fault,
            nearest_namespace(scoped[1] if scoped else slug),
        )
    return namespace


def _fault(slug: str, namespace: str) -> Fault | None:
    """What is wrong with the slug, or with what it comes to, told at the slug's own characters."""
    if unfit := UNFIT.search(slug):
        return Fault("slug-characters", unfit.start())
    fault = part_fault(NAMESPACE, namespace)
    if fault is None:
        return None
    kept = [at for at, character in enumerate(slug) if not JOINT.match(character)]
    return Fault(fault.rule, (*kept, len(slug))[min(fault.position, len(kept))])
