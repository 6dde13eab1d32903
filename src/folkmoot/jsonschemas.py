"""JSON Schema with limits on its cost, for schemas from servers that are not trusted.

The library judges a value in microseconds and its regular expressions take linear time. What it
does not bound is bounded here before it runs: how large a schema is and how far its references
expand, how large a value is, and how many errors are described. What is beyond a bound is not
checked; the server will.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, NoReturn

import jsonschema_rs
import msgspec

logger = logging.getLogger("folkmoot.schemas")

MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_DEPTH: Final = 64
MOST_SUBSCHEMAS: Final = 20_000
"""Subschemas of a schema whose references are all replaced by what they refer to."""
MOST_UNEVALUATED: Final = 4
"""How deep `unevaluatedProperties` and `unevaluatedItems` may be nested: each doubles the work."""
MOST_PATTERNS: Final = 128
MOST_PATTERN_BYTES: Final = 100_000
"""The size of a compiled regular expression; `^[a-z]{1,255}$` needs a fifth of it."""
MOST_TEXT: Final = 8 * 1024
"""Characters of a value that patterns are held against; with more, patterns are left out."""
MOST_VALUES: Final = 50_000
"""Members and items of a value, times the patterns and alternatives that each may be held to."""
MOST_FLAT: Final = 64
SCALARS: Final = frozenset((str, int, float, bool, type(None)))
MOST_DESCRIBED: Final = 3_000
"""Subschemas times values up to which each error is described: the library makes all of them."""
MOST_DESCRIBED_TEXT: Final = 100_000
MOST_ERRORS: Final = 5
MOST_KEPT: Final = 4_096

DIALECTS: Final[dict[str, Any]] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
DEFAULT_DIALECT: Final = jsonschema_rs.Draft202012Validator
PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=MOST_PATTERN_BYTES)

LEFT_OUT: Final = ("$schema", "$id", "$dynamicRef", "$recursiveRef")
"""Keywords that are left out, so that `#/…` means the same everywhere in a schema."""
ABOUT_NAMES: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
"""Keywords that hold the patterns of `patternProperties` against names."""
UNEVALUATED: Final = frozenset(("unevaluatedProperties", "unevaluatedItems"))

Fault = str
"""What is wrong with a value, where: `path: 5 is not of type "string"`."""


class TooComplex(Exception):
    """A schema would cost too much to apply."""


class Schema:
    """One schema; `faults` says what is wrong with a value."""

    def __init__(self, source: dict[str, Any], tool: str = "") -> None:
        self._source = source
        self._tool = tool
        self._validator: Any = None
        self._without_patterns: Any = None
        self._patterns = 0
        self._size = 1
        self.unusable = False
        """Whether the schema is invalid or too complex, so that nothing can be checked."""

    @property
    def prepared(self) -> bool:
        """Whether the schema is compiled, so that a value is checked in microseconds."""
        return self.unusable or self._validator is not None

    def prepare(self) -> None:
        """Compile the schema, if it is not compiled yet; a large one takes some milliseconds."""
        if self.prepared:
            return
        try:
            self._compile()
        except Exception as error:  # noqa: BLE001 - a stranger's schema can be wrong in any way
            self.unusable = True
            reason = str(error).partition("\n")[0][:200]
            logger.warning(
                "the schema of a tool cannot be used, so arguments are not checked against it",
                extra={"tool": self._tool, "reason": reason},
            )

    def fits(self, value: Any) -> bool:
        """Whether a value fits, as far as it can be told within the limits."""
        if self._validator is None:
            self.prepare()
        if self.unusable:
            return True
        validator = self._validator
        if self._patterns or type(value) is not dict or not is_flat(value):
            values, text = measured(value, MOST_VALUES // (1 + self._patterns))
            if values is None:
                return True
            if self._patterns and text > MOST_TEXT:
                validator = self._without_patterns
        try:
            return bool(validator.is_valid(value))
        except Exception:  # noqa: BLE001 - such as a text that is no Unicode
            return True

    def faults(self, value: Any) -> list[Fault]:
        """What is wrong with a value; a few things at most."""
        if self.fits(value):
            return []
        values, text = measured(value, MOST_DESCRIBED // self._size)
        if values is None or text > MOST_DESCRIBED_TEXT:
            return ["the value does not match; it is too large to say where"]
        validator = self._without_patterns if text > MOST_TEXT else self._validator
        return [described(error) for error in islice(validator.iter_errors(value), MOST_ERRORS)]

    def _compile(self) -> None:
        named = self._source.get("$schema")
        dialect = DIALECTS.get(named.rstrip("#") if isinstance(named, str) else "", DEFAULT_DIALECT)
        patterns: list[str] = []

        def is_linear(pattern: str) -> bool:
            patterns.append(pattern)
            if len(patterns) > MOST_PATTERNS:
                return False
            try:
                jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=PATTERNS)
            except (jsonschema_rs.ValidationError, ValueError):
                return False
            return True

        schema = simplified(self._source, is_linear)
        self._size = expanded_size(schema)
        self._patterns = len(patterns)
        self._without_patterns = compiled(dialect, simplified(self._source, lambda _: False))
        self._validator = compiled(dialect, schema)


class Schemas:
    """Compiled schemas by content: the same schema in a thousand sessions is compiled once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Schema] = OrderedDict()

    def of(self, source: Any, tool: str = "") -> Schema | None:
        """The schema of a tool; None for what is none or is too large."""
        if not isinstance(source, dict):
            return None
        encoded = msgspec.json.encode(source)
        if len(encoded) > MOST_SCHEMA_BYTES:
            return None
        digest = hashlib.blake2b(encoded, digest_size=16).digest()
        schema = self._kept.get(digest)
        if schema is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.popitem(last=False)
            self._kept[digest] = schema = Schema(source, tool)
        return schema


def compiled(dialect: Any, schema: dict[str, Any]) -> Any:
    """A validator that fetches nothing."""
    return dialect(schema, retriever=refuse, pattern_options=PATTERNS, validate_formats=False)


def refuse(uri: str) -> NoReturn:
    """Fetch nothing: a schema must not make the hub send requests."""
    raise ValueError(f"references to other documents are not followed: {uri[:100]}")


def simplified(value: Any, keep: Callable[[str], bool], depth: int = 0) -> Any:
    """A schema without keywords that are left out, and without patterns that are not kept.

    Raises `TooComplex` for one that is nested too deep.
    """
    if depth > MOST_DEPTH:
        raise TooComplex("the schema is nested too deep")
    if isinstance(value, list):
        return [simplified(item, keep, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    dropped = {name for name in LEFT_OUT if isinstance(value.get(name), str)}
    if isinstance(value.get("pattern"), str) and not keep(value["pattern"]):
        dropped.add("pattern")
    named = value.get("patternProperties")
    if isinstance(named, dict) and not all(map(keep, named)):
        dropped.update(ABOUT_NAMES)
    return {
        name: simplified(inner, keep, depth + 1)
        for name, inner in value.items()
        if name not in dropped
    }


def expanded_size(schema: dict[str, Any]) -> int:
    """The number of subschemas with every reference replaced by its target.

    Raises `TooComplex` above the limit, which is reached by a few levels of references that each
    stand twice.
    """
    sizes: dict[int, tuple[int, int]] = {}

    def size(value: Any) -> tuple[int, int]:
        if not isinstance(value, dict | list):
            return 0, 0
        if id(value) in sizes:
            return sizes[id(value)]
        sizes[id(value)] = 1, 0  # what refers to itself ends here
        inner = list(value.values() if isinstance(value, dict) else value)
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            inner.append(resolved(schema, value["$ref"]))
        total, deepest = 1, 0
        for each in inner:
            count, unevaluated = size(each)
            total, deepest = total + count, max(deepest, unevaluated)
        if isinstance(value, dict) and not UNEVALUATED.isdisjoint(value):
            deepest += 1
        if total > MOST_SUBSCHEMAS or deepest > MOST_UNEVALUATED:
            raise TooComplex("the schema takes too many steps to apply")
        sizes[id(value)] = total, deepest
        return total, deepest

    return size(schema)[0]


def resolved(schema: dict[str, Any], reference: str) -> Any:
    """What a reference within a schema refers to; None for any other, which is not followed."""
    found: Any = schema
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)] if name.isdigit() and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found


def is_flat(value: dict[str, Any]) -> bool:
    """Whether an object has only a few members, with nothing in them: most arguments are such."""
    return len(value) <= MOST_FLAT and SCALARS.issuperset(map(type, value.values()))


def measured(value: Any, most: int) -> tuple[int | None, int]:
    """How many values there are in a value, and characters; None where there are more."""
    count = text = 0
    left = [value]
    while left:
        each = left.pop()
        count += 1
        if type(each) is str:
            text += len(each)
        elif type(each) is dict:
            text += sum(map(len, each))
            left += each.values()
        elif type(each) is list:
            left += each
        if count + len(left) > most:
            return None, text
    return count, text


def described(error: Any) -> Fault:
    """An error in one short line, with the place it is at."""
    place = ".".join(map(str, error.instance_path))
    said = str(error.message)
    cut = said if len(said) <= 200 else said[:200] + "…"
    told = cut if cut.isprintable() else repr(cut)[1:-1]
    return f"{place}: {told}" if place else told
