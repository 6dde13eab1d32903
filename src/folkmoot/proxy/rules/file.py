"""The file of rules: `[[rule]]` tables in TOML, all of it checked before any applies.

`BUILT_IN` is the table of interceptors that a rule may `use`. `Rules` follows the file for as long
as a proxy runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
import tomllib
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.core.strict import same
from folkmoot.proxy.interceptors.base import (
    Action,
    Canonical,
    Groups,
    Means,
    OptionInvalid,
    Options,
)
from folkmoot.proxy.interceptors.descriptions import Scrub, ScrubOptions
from folkmoot.proxy.interceptors.faults import AddedLatency, FaultOptions, Faults, LatencyOptions
from folkmoot.proxy.interceptors.limits import RateLimit, RateOptions, SizeLimit, SizeOptions
from folkmoot.proxy.interceptors.redact import Redact, RedactOptions
from folkmoot.proxy.interceptors.tools import SchemaCheck, SchemaOptions, ToolFilter, ToolOptions
from folkmoot.proxy.plugins import load_plugin
from folkmoot.proxy.rules.actions import ACTIONS
from folkmoot.proxy.rules.conditions import Wrong, converted, nearest
from folkmoot.proxy.rules.ruleset import Plugin, Rule, RuleSet
from folkmoot.proxy.rules.when import compiled


class BuiltIn(msgspec.Struct, frozen=True):
    """One built-in interceptor."""

    name: str
    does: str
    options: type[Options]
    make: Callable[[Any, Means], Action]


BUILT_IN: Final = {
    built_in.name: built_in
    for built_in in (
        BuiltIn(
            "tools",
            "Lists only the tools that are allowed, and stops calls of the others",
            ToolOptions,
            ToolFilter,
        ),
        BuiltIn(
            "schema-check",
            "Checks arguments and results against the schemas of the server's tools",
            SchemaOptions,
            SchemaCheck,
        ),
        BuiltIn(
            "scrub-descriptions",
            "Removes hidden characters and instructions to the model from descriptions",
            ScrubOptions,
            Scrub,
        ),
        BuiltIn("redact", "Replaces secrets in arguments and results", RedactOptions, Redact),
        BuiltIn("rate-limit", "Limits the calls per minute", RateOptions, RateLimit),
        BuiltIn("size-limit", "Stops messages that are too large", SizeOptions, SizeLimit),
        BuiltIn("latency", "Delays messages, for tests", LatencyOptions, AddedLatency),
        BuiltIn("faults", "Makes messages fail, for tests", FaultOptions, Faults),
    )
}
"""Every built-in interceptor by its name, in the order of the documentation."""


MOST_BYTES: Final = 1024 * 1024
MOST_RULES: Final = 10_000
MOST_NAME: Final = 100
PLUGIN: Final = "plugin:"
OWN: Final = frozenset({"name", "when", "action", "use", "options"})
"""What a rule says whatever it does; the rest is for its action."""

_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*[\"']?rule[\"']?[ \t]*\]\]", re.MULTILINE)


def read_rules(path: Path, means: Means, before: Sequence[Rule] = ()) -> list[Rule]:
    """The rules of a file, in order; unchanged rules keep their objects and state."""
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise e.RulesInvalid(f"{path}: is not TOML: {error}.") from None
    listed = document.pop("rule", [])
    if document:
        raise e.RulesInvalid(f"{path}: {next(iter(document))!r} is not known; rules are [[rule]].")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise e.RulesInvalid(f"{path}: rules are written as [[rule]].")
    if len(listed) > MOST_RULES:
        raise e.RulesInvalid(f"{path}: has {len(listed):,} rules; at most {MOST_RULES:,} are read.")
    return _Reader(path, text, means, before).read(listed)


class _Reader:
    def __init__(self, path: Path, text: str, means: Means, before: Sequence[Rule]) -> None:
        self._path = path
        self._text = text
        self._means = means
        self._before = {rule.name: rule for rule in before}

    def read(self, listed: list[dict[str, Any]]) -> list[Rule]:
        rules: dict[str, Rule] = {}
        for number, source in enumerate(listed, 1):
            try:
                rule = self._rule(source, rules)
            except Wrong as wrong:
                where = self._where(number, source, len(listed))
                raise e.RulesInvalid(f"{self._path}: {where}: {_sentence(str(wrong))}") from None
            rules[rule.name] = rule
        return list(rules.values())

    def _where(self, number: int, source: dict[str, Any], count: int) -> str:
        name = source.get("name")
        named = f" {name!r}" if isinstance(name, str) else ""
        lines = [self._text.count("\n", 0, it.start()) + 1 for it in _HEADER.finditer(self._text)]
        # A text over several lines may hold what looks like a header.
        at = f" (line {lines[number - 1]})" if len(lines) == count else ""
        return f"rule {number}{named}{at}"

    def _rule(self, source: dict[str, Any], others: Container[str]) -> Rule:
        name = source.get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME:
            raise Wrong(f"'name' must be a text of 1 to {MOST_NAME} characters")
        if not name.isprintable():
            raise Wrong("'name' must not hold control characters")
        if name in others:
            raise Wrong("another rule has this name already")
        kept = self._before.get(name)
        if kept is not None and same(kept.source, source):
            return kept
        try:
            condition = compiled(source.get("when", {}), self._means)
            return Rule(name, source, condition, self._action(source, name))
        except OptionInvalid as error:
            raise Wrong(str(error)) from None

    def _action(self, source: dict[str, Any], name: str) -> Action:
        if ("action" in source) is ("use" in source):
            raise Wrong("needs either 'action' or 'use'")
        rest = {key: value for key, value in source.items() if key not in OWN}
        if "use" in source:
            if rest:
                extra = next(iter(rest))
                raise Wrong(f"{extra!r} is not known{nearest(extra, OWN)}")
            return self._used(source["use"], source.get("options", {}))
        if "options" in source:
            raise Wrong("'options' are for 'use'; an action's stand beside it")
        wanted = source["action"]
        known = ACTIONS.get(wanted) if isinstance(wanted, str) else None
        if known is None:
            raise Wrong(f"action {wanted!r} is not known{nearest(str(wanted), ACTIONS)}")
        return known.make(converted(rest, known.options, "option"), name)

    def _used(self, wanted: Any, options: Any) -> Action:
        if not isinstance(wanted, str):
            raise Wrong(f"'use' must be a text, not {wanted!r}")
        if not isinstance(options, dict):
            raise Wrong(f"'options' must be a table, not {options!r}")
        if wanted.startswith(PLUGIN):
            try:
                return Plugin(load_plugin(wanted.removeprefix(PLUGIN), options))
            except e.FolkmootError as error:
                raise Wrong(error.message.rstrip(".")) from None
        built_in = BUILT_IN.get(wanted)
        if built_in is None:
            known = [*BUILT_IN, f"{PLUGIN}NAME"]
            raise Wrong(f"there is no interceptor {wanted!r} to use{nearest(wanted, known)}")
        given = converted(options, built_in.options, "option")
        return built_in.make(given, self._means)


def _text(path: Path) -> str:
    try:
        # Without waiting: nobody may ever write to what is no file.
        with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise e.RulesInvalid(f"{path}: is not a file.")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise e.RulesInvalid(f"{path}: cannot be read: {error.strerror}.") from None
    if len(data) > MOST_BYTES:
        raise e.RulesInvalid(f"{path}: has more than {MOST_BYTES:,} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise e.RulesInvalid(f"{path}: line {line} is not UTF-8.") from None


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


logger = logging.getLogger("folkmoot.proxy")

LOOK_SECONDS: Final = 1.0

Stamp: TypeAlias = tuple[int, int, int] | None
"""What tells that a file is another one: its time, its size and its number."""


def _as_it_is(name: str) -> str:
    return name


class Rules:
    """An ordered set of rules that follows its file. A file that is wrong changes nothing."""

    def __init__(self, path: Path, means: Means) -> None:
        self.path = path
        self._means = means
        self._seen = stamp(path)
        self.ruleset = RuleSet(read_rules(path, means), means.canonical)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        clock: Clock,
        canonical: Canonical = _as_it_is,
        groups: Groups | None = None,
    ) -> Rules:
        """The rules of a file; `RulesInvalid` says what is wrong with it, and where.

        `canonical` answers the one name of a tool that may be spelled in several ways, and `groups`
        the groups that someone is in. Without it no rule can name who asks.
        """
        return cls(path, Means(clock, canonical, groups))

    @property
    def interceptors(self) -> tuple[Interceptor, ...]:
        """What a chain is made with; it goes by whatever the rules are at the time."""
        return (self.ruleset,)

    def reload(self) -> None:
        """Read the file again. What has not changed keeps what it has counted and learnt."""
        self.ruleset.swap(read_rules(self.path, self._means, self.ruleset.rules))

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """Read the file again whenever it is another one, until cancelled.

        The file is looked at every so many seconds, and read only when it has changed.
        """
        while True:
            await asyncio.sleep(seconds)
            now = stamp(self.path)
            if now == self._seen:
                continue
            self._seen = now
            try:
                self.reload()
            except e.RulesInvalid as error:
                logger.warning("the rules were not changed", extra={"error": error.message})
            else:
                count = len(self.ruleset.rules)
                logger.info("the rules were changed", extra={"rules": count})


def stamp(path: Path) -> Stamp:
    """A stamp that changes with the file; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
