"""What a backend lists compared with what was pinned, and the differences an operator is shown."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.gateway.limits import (
    MAX_DIFF_LINES,
    MAX_LINES_COMPARED,
    MAX_PINNED_CHARACTERS,
    MAX_PINS,
)
from folkmoot.gateway.mapping import canonical_name
from folkmoot.gateway.model import Definition
from folkmoot.gateway.queries import Changed, Definite

PINNED: Final = (
    *("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
    *("arguments", "icons", "_meta"),
)
"""The members of the definition of a tool or a prompt that are pinned."""
MAX_ICON: Final = 1_024
"""Characters of the address of an icon that are kept; of a longer one the hash is."""

INSTRUCTIONS: Final = ""
"""The name under which a backend's instructions are pinned: no tool can have it."""
PROMPT: Final = "prompts/get:"
"""Begins the names under which prompts are pinned; a tool whose name begins so is not shown. By
itself it is pinned once the list of prompts was read to its end: those that come later are new.
"""

NEVER: Final = ""
"""The hash of a tool that was never accepted: it came after the backend's first inventory."""

Verdict: TypeAlias = Literal["new", "same", "changed", "held", "unread", "refused"]
"""`held` is a tool that came later and waits to be accepted; `unread` one of a first inventory that
was not read to its end, of which nothing is accepted yet.
"""
_encode = msgspec.json.Encoder(order="sorted").encode


class Judged(Struct, frozen=True):
    """What is to be thought of a tool, and the pinned definition of one that has changed."""

    verdict: Verdict
    pinned: Definition | None = None


class Pin(Struct, gc=False):
    """What is at hand of a pin: the hashes of what was pinned and of what it became, and how long
    the two definitions are.
    """

    hash: str
    size: int
    changed_hash: str | None = None
    changed_size: int = 0


class Judging:
    """The tools of a backend, sorted by what has to be done about them."""

    def __init__(
        self,
        namespace: str,
        held: dict[str, Pin],
        tools: Iterable[Definition],
        *,
        trusted: bool,
        hold_new: bool,
        whole: bool,
    ) -> None:
        self.verdicts: dict[str, Verdict] = {}
        """By the names that the backend lists now."""
        self.pinned_as: dict[str, str] = {}
        self.pin: list[Definite] = []
        self.hold: list[Definite] = []
        """New tools that are kept without being accepted."""
        self.note: list[Definite] = []
        self.back: list[str] = []
        self.repinned = 0
        self._namespace = namespace
        self._held = held
        self._hold_new = hold_new and not trusted
        tools = tuple(tools)
        self._is_first = {
            "tools": all(name == INSTRUCTIONS or is_prompt(name) for name in held),
            "prompts": PROMPT not in held,
        }
        self._is_whole = {
            "tools": whole,
            "prompts": any(each["name"] == PROMPT for each in tools),
        }
        self._twins: dict[str, str] | None = None
        self._room = MAX_PINS - len(held)
        self._space = MAX_PINNED_CHARACTERS - sum(
            pin.size + pin.changed_size for pin in held.values()
        )
        for tool in tools:
            now = pinned_part(tool)
            name = self.pinned_as[now.name] = self._pinned_as(now.name)
            self.verdicts[now.name] = self._judge(now._replace(name=name), trusted=trusted)

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.pin or self.hold or self.note or self.back)

    @property
    def changed(self) -> bool:
        return "changed" in self.verdicts.values()

    def _pinned_as(self, own: str) -> str:
        """The name under which a tool was pinned.

        Another name of the backend's own may be the same name here: `getData` is no new tool where
        `get_data` was one.
        """
        if own in self._held:
            return own
        if self._twins is None:
            self._twins = {pinned_name(self._namespace, each): each for each in self._held}
        return self._twins.get(pinned_name(self._namespace, own), own)

    def _judge(self, now: Definite, *, trusted: bool) -> Verdict:
        pin, size = self._held.get(now.name), len(now.definition)
        if pin is None:
            return self._judge_new(now, size)
        if pin.hash == NEVER:
            return self._judge_held(now, pin, size)
        if pin.hash == now.hash:
            if pin.changed_hash is not None:
                self.back.append(now.name)
            return "same"
        if trusted:
            if not self._takes(size - pin.size - pin.changed_size):
                return "refused"
            self.pin.append(now)
            self.repinned += 1
            return "same"
        if pin.changed_hash != now.hash and self._takes(size - pin.changed_size):
            self.note.append(now)
        return "changed"

    def _judge_new(self, now: Definite, size: int) -> Verdict:
        what = "prompts" if is_prompt(now.name) else "tools"
        first = self._is_first[what]
        if first and not self._is_whole[what]:
            return "unread"
        self._room -= 1
        if self._room < 0 or not self._takes(size):
            return "refused"
        # Those of a hub that did not know of instructions yet have reached nobody.
        if self._hold_new and not first and now.name != INSTRUCTIONS:
            self.hold.append(now)
            return "held"
        self.pin.append(now)
        return "new"

    def _judge_held(self, now: Definite, pin: Pin, size: int) -> Verdict:
        more = size - pin.changed_size
        if not self._hold_new:
            if not self._takes(more):
                return "refused"
            self.pin.append(now)
            return "new"
        if pin.changed_hash != now.hash and self._takes(more):
            self.note.append(now)
        return "held"

    def _takes(self, size: int) -> bool:
        """Take so many characters of the budget; whether there were as many."""
        if size > max(self._space, 0):
            return False
        self._space -= size
        return True


def pinned_name(namespace: str, own: str) -> str:
    """What a pin is called: the canonical name of its tool, or a URI for anything else."""
    if own == INSTRUCTIONS:
        return f"{namespace}://instructions"
    if is_prompt(own):
        name = canonical_name(namespace, own[len(PROMPT) :]) if own != PROMPT else ""
        return f"{namespace}://prompts/{name.partition(':')[2]}"
    return canonical_name(namespace, own)


def is_prompt(own: str) -> bool:
    """Whether this is the name of a prompt's pin."""
    return own.startswith(PROMPT)


def pinned_part(definition: Definition) -> Definite:
    """The pinned part of a definition in canonical form, and its hash."""
    kept = {key: definition[key] for key in PINNED if definition.get(key) is not None}
    if isinstance(icons := kept.get("icons"), list):
        kept["icons"] = [_brief_icon(icon) for icon in icons]
    text = _encode(kept)
    return Definite(definition["name"], hashlib.sha256(text).hexdigest(), text.decode())


def _brief_icon(icon: Any) -> Any:
    """An icon whose address is short: a picture may stand in it."""
    src = icon.get("src") if isinstance(icon, dict) else None
    if not isinstance(src, str) or len(src) <= MAX_ICON:
        return icon
    digest = hashlib.sha256(src.encode("utf-8", "surrogatepass")).hexdigest()
    return {**icon, "src": f"{src[:64]}… (sha256 {digest})"}


class PinDiff(Struct, frozen=True, kw_only=True):
    """A tool that has changed, or is new."""

    namespace: str
    name: str
    """The backend's own."""
    canonical: str
    new: bool
    """Whether it came after the first inventory of its backend; `pinned` is empty then."""
    pinned: Definition
    changed: Definition
    changed_hash: str
    since: int
    """When the change was first seen, in seconds of the epoch."""
    lines: list[str]
    """The difference as a person reads it."""


def difference(each: Changed) -> PinDiff:
    """How a tool's new definition differs from its pin."""
    pinned, changed = json.loads(each.definition), json.loads(each.changed_definition)
    lines = difflib.unified_diff(
        _readable(pinned) if pinned else [],
        _readable(changed),
        "pinned",
        "changed" if pinned else "new",
        lineterm="",
    )
    return PinDiff(
        namespace=each.namespace,
        name=each.name,
        canonical=pinned_name(each.namespace, each.name),
        new=each.hash == NEVER,
        pinned=pinned,
        changed=changed,
        changed_hash=each.changed_hash,
        since=each.changed_at,
        lines=list(lines)[:MAX_DIFF_LINES],
    )


def _readable(definition: dict[str, Any]) -> list[str]:
    """Lines of JSON; what a terminal would not show as it is, is written out."""
    text = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    return [
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        for line in text.split("\n")[:MAX_LINES_COMPARED]
    ]
