"""JSON Schema with limits on its cost, for schemas from servers that are not trusted.

References lead nowhere outside the schema. What takes too many steps, and a pattern that could, is
not checked any further; the server will.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, Final

import msgspec

from folkmoot.metaschemas import metaschema_of
from folkmoot.plainschemas import never, plain_check

logger = logging.getLogger("folkmoot.schemas")

MOST_STEPS: Final = 10_000
"""Keywords applied in one check."""
MOST_READING: Final = 60_000
"""Keywords applied to find out whether a schema makes sense; one that takes more is not used."""
MOST_WORK: Final = 20_000_000
"""What keywords that can take long may cost in one check, in looks at a character."""
MOST_ERRORS: Final = 5
MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_PATTERN: Final = 256
MOST_MATCHED: Final = 2_000
"""Characters of a text that a pattern is held against."""
MOST_UNIQUE: Final = 100
MOST_KEPT: Final = 4_096

_RISKY = re.compile(r"\)[*+?{]|\\[1-9kK]|\(\?|\(\*")
"""In a pattern: repeated groups, references and look-arounds, which can take exponential time."""
_REPEATS = re.compile(r"[*+]|\{[0-9]*,[0-9]*\}")
MOST_REPEATS: Final = 2
MOST_OPTIONS: Final = 4
"""How often a pattern may say `?`: each doubles what has to be tried."""
UNIQUE_COST: Final = 2_000
ENUM_COST: Final = 100
"""What it costs to compare two values, in looks at a character."""

Fault = str
"""What is wrong with a value, where: `path: 5 is not of type 'string'`."""


class TooMuch(Exception):
    """A check takes more steps than it is worth."""


class Schema:
    """One schema; `faults` says what is wrong with a value."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.surely_fits = plain_check(source) or never
        """Whether a value can be told at once to fit."""
        self._validator: Any = None
        self.unusable = False
        """Whether the schema itself makes no sense, so that nothing can be checked."""

    def faults(self, value: Any) -> list[Fault]:
        """What is wrong with a value, as much as can be told in time; a few things at most."""
        if self.surely_fits(value):
            return []
        self.prepare()
        if self.unusable:
            return []
        _COUNTER.reset()
        found: list[Fault] = []
        with suppress(Exception):  # whatever strangers' values make of strangers' schemas
            for error in islice(self._validator.iter_errors(value), MOST_ERRORS):
                found.append(_told(error))  # noqa: PERF401 - what was found before it broke counts
        return found

    @property
    def prepared(self) -> bool:
        """Whether a value that may not fit can be checked at once."""
        return self.unusable or self._validator is not None

    def prepare(self) -> None:
        """Read the schema, if it was not read yet; a long one takes a while."""
        if self.prepared:
            return
        try:
            self._validator = _validator(self._source)
        except Exception:  # noqa: BLE001 - a stranger's schema can be wrong in any way
            self.unusable = True
            logger.warning(
                "the schema of a tool is not valid, so arguments are not checked against it"
            )


class Schemas:
    """Schemas by what they say: the same schema in a thousand sessions is one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Schema] = OrderedDict()

    def of(self, source: Any) -> Schema | None:
        """The schema of a source; None for what is none or is too large."""
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
            self._kept[digest] = schema = Schema(source)
        return schema


def prepare() -> None:
    """Have the library at hand; it is slow to import, which no message should wait for."""
    _dialects()


class _Counter(threading.local):
    """Counts the steps of the check that is under way; a check never waits, so a thread has one."""

    def __init__(self) -> None:
        self._work = 0
        self._left = MOST_STEPS

    def reset(self, steps: int = MOST_STEPS) -> None:
        self._work = 0
        self._left = steps

    def affords(self, work: int) -> bool:
        """Whether so much can still be done; then it is taken as done."""
        if self._work + work > MOST_WORK:
            return False
        self._work += work
        return True

    def step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooMuch


_COUNTER: Final = _Counter()


def _validator(source: dict[str, Any]) -> Any:
    from referencing import Registry

    named = source.get("$schema")
    dialect = _dialect(named if isinstance(named, str) else "")
    schema = _harmless(source)
    _COUNTER.reset(MOST_READING)
    if not metaschema_of(dialect).is_valid(schema):
        raise TypeError
    return dialect(schema, registry=Registry())


@cache
def _dialects() -> dict[str, Any]:
    # Only those who check schemas pay for it.
    import jsonschema  # type: ignore[import-untyped]

    known = (
        jsonschema.Draft202012Validator,
        jsonschema.Draft201909Validator,
        jsonschema.Draft7Validator,
        jsonschema.Draft6Validator,
        jsonschema.Draft4Validator,
    )
    return {
        each.META_SCHEMA.get("$id", each.META_SCHEMA.get("id", "")).rstrip("#"): _bounded(each)
        for each in known
    }


def _dialect(name: str) -> Any:
    dialects = _dialects()
    return dialects.get(name.rstrip("#")) or next(iter(dialects.values()))


def _bounded(dialect: Any) -> Any:
    """The dialect with each of its keywords counted, and the dangerous ones held back."""
    from jsonschema.validators import extend  # type: ignore[import-untyped]

    keywords = {name: _counted(apply) for name, apply in dialect.VALIDATORS.items()}
    for name, cost in COSTS.items():
        if name in keywords:
            keywords[name] = _if_affordable(keywords[name], cost)
    return extend(dialect, keywords)


Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def _counted(apply: Keyword) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any] | None:
        _COUNTER.step()
        return apply(validator, value, instance, schema)

    return counted


def _if_affordable(apply: Keyword, cost: Cost) -> Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any] | None:
        if _COUNTER.affords(cost(value, instance, schema)):
            return apply(validator, value, instance, schema)
        return None

    return checked


def is_quick(pattern: Any) -> bool:
    """Whether a regular expression takes little time on a text of some length, whatever it is."""
    return (
        isinstance(pattern, str)
        and len(pattern) <= MOST_PATTERN
        and not _RISKY.search(pattern)
        and _repeats(pattern) <= MOST_REPEATS
        and pattern.count("?") <= MOST_OPTIONS
        and ("|" not in pattern or pattern.count("(") <= 1)
    )


def _repeats(pattern: str) -> int:
    """How often something is repeated; a pattern may also begin anywhere."""
    return len(_REPEATS.findall(pattern)) + (not pattern.startswith("^"))


def _search(pattern: Any, text: Any) -> int:
    """What it costs at most to look for a quick pattern in a text."""
    if not isinstance(pattern, str) or not isinstance(text, str):
        return 0
    if len(text) > MOST_MATCHED:
        return TOO_MUCH
    choices = (pattern.count("|") + 1) << pattern.count("?")
    return len(pattern) + choices * int(len(text) ** max(1, _repeats(pattern)))


def _search_names(_wanted: Any, value: Any, schema: Any) -> int:
    """What it costs to hold the patterns beside a keyword against the names of an object."""
    patterns = schema.get("patternProperties") if isinstance(schema, dict) else None
    if not isinstance(value, dict) or not isinstance(patterns, dict):
        return 0
    cost = 0
    for name in value:
        cost += sum(_search(pattern, name) for pattern in patterns)
        if cost > MOST_WORK:
            break
    return cost


def _compare_all(_wanted: Any, items: Any, _schema: Any) -> int:
    if not isinstance(items, list):
        return 0
    return TOO_MUCH if len(items) > MOST_UNIQUE else UNIQUE_COST * len(items) ** 2


Cost = Callable[[Any, Any, Any], int]
TOO_MUCH: Final = MOST_WORK + 1

COSTS: Final[dict[str, Cost]] = {
    "pattern": lambda pattern, text, _: _search(pattern, text),
    "patternProperties": _search_names,
    "additionalProperties": _search_names,
    "unevaluatedProperties": _search_names,
    "uniqueItems": _compare_all,
    "enum": lambda wanted, _, __: ENUM_COST * len(wanted) if isinstance(wanted, list) else 0,
}
"""Keywords that could take long, and what they cost."""

ABOUT_NAMES: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
"""Keywords that hold the patterns of `patternProperties` against names."""


UNFOLLOWED: Final = ("$schema", "$dynamicRef", "$recursiveRef")
"""Keywords that are left out: a dialect further in would count nothing, and what a reference stands
for that depends on where it is met takes the whole schema to find out, every time.
"""


def _harmless(value: Any) -> Any:
    """The schema without patterns that could take long, and without what is not followed."""
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if not isinstance(value, dict):
        return value
    dropped = {name for name in UNFOLLOWED if isinstance(value.get(name), str)}
    if isinstance(value.get("pattern"), str) and not is_quick(value["pattern"]):
        dropped.add("pattern")
    named = value.get("patternProperties")
    if isinstance(named, dict) and not all(map(is_quick, named)):
        dropped.update(ABOUT_NAMES)
    return {name: _harmless(inner) for name, inner in value.items() if name not in dropped}


def _told(error: Any) -> Fault:
    place = ".".join(str(step) for step in error.absolute_path)
    said = str(error.message)
    cut = said if len(said) <= 200 else said[:200] + "…"
    told = cut if cut.isprintable() else repr(cut)[1:-1]
    return f"{place}: {told}" if place else told
