"""Descriptions without what has no business in them: hidden characters, and orders to the model.

Each pattern has a name, which is what is shown in its place. They look for what poisoned tools are
known to do, and cannot know everything: a clever text passes.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.mcp.wire import (
    DISCOVER,
    INITIALIZE,
    PROMPTS_LIST,
    RESOURCES_LIST,
    TEMPLATES_LIST,
    TOOLS_LIST,
)
from folkmoot.proxy.interceptors.base import (
    RESPONSE,
    Action,
    Means,
    MessageKey,
    MessageView,
    Options,
    truncated,
)

SOME: Final = r"\W{1,5}(?:\w{1,20}\W{1,5}){0,4}"
"""A few words between two others; bounded, so that no text takes long."""


class Poison(msgspec.Struct, frozen=True):
    """One thing to look for."""

    name: str
    what: str
    found: re.Pattern[str]
    hidden: bool = False
    """Whether nobody sees it; names and other values may not hold such either."""
    really: Callable[[str], bool] | None = None
    """Whether what was found is what it looks like."""


def _is_blob(text: str) -> bool:
    """Whether a long word is encoded data: no language mixes its letters and digits so."""
    least = ((str.isupper, 0.1), (str.islower, 0.1), (str.isdigit, 0.03))
    return all(sum(map(kind, text)) >= share * len(text) for kind, share in least)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


POISONS: Final[tuple[Poison, ...]] = (
    Poison(
        "hidden-tags",
        "Letters of the Unicode block of tags, which nobody sees and models read",
        re.compile("[\U000e0000-\U000e007f]+"),
        hidden=True,
    ),
    Poison(
        "bidi",
        "Characters that turn the direction of a text around",
        re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+"),
        hidden=True,
    ),
    Poison(
        "zero-width",
        "Characters without a width; joiners only where no script or emoji has use for them",
        re.compile(
            "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164"
            "\ufeff\uffa0\ufff9-\ufffb]+|(?<=[ -~])[\u200c\u200d]+|[\u200c\u200d]+(?=[ -~])"
            "|[\u200c\u200d]{2,}"
        ),
        hidden=True,
    ),
    Poison(
        "variation-selectors",
        "Runs of variation selectors, which can hold any message",
        re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"),
        hidden=True,
    ),
    Poison(
        "control-characters",
        "Control characters, among them those that act on terminals",
        re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+"),
        hidden=True,
    ),
    Poison(
        "hidden-comment",
        "HTML comments, which a rendered page does not show",
        re.compile(r"<!--[\s\S]*?(?:-->|\Z)"),
    ),
    Poison(
        "model-tags",
        "Tags such as `<IMPORTANT>`, and marks that separate turns of a conversation",
        _words(
            r"</?\s{0,3}(?:important|system|secret|hidden|critical|urgent|instructions?|admin"
            r"|assistant|sys|prompt|override|developer)(?:[\s/][^<>]{0,80})?>"
            r"|<\|[a-z_ ]{2,30}\|>|\[/?INST\]|<</?SYS>>"
        ),
    ),
    Poison(
        "ignore-instructions",
        "“Ignore all previous instructions” and its kin",
        _words(
            rf"\b(?:ignore|disregard|forget|override|bypass){SOME}"
            r"(?:previous|prior|earlier|above|preceding|existing|other|system|all|any|your)"
            rf"{SOME}(?:instructions?|prompts?|rules|guidelines|directives|messages?|context)\b"
            r"|\b(?:ignore|disregard|forget)\W{1,5}(?:everything|all)\W{1,5}(?:above|before)\b"
        ),
    ),
    Poison(
        "secrecy",
        "“Do not tell the user” and its kin",
        _words(
            r"\b(?:do\W{1,3}not|don.?t|never|must\W{1,3}not|should\W{1,3}not|without|avoid|cannot)"
            rf"{SOME}(?:tell|telling|inform|informing|mention|mentioning|notify|notifying|reveal"
            r"|revealing|disclose|disclosing|alert|alerting|ask|asking|warn|warning|show|showing)"
            rf"{SOME}(?:user|users|human|humans)\b"
            rf"|\b(?:hide|conceal|keep){SOME}(?:from){SOME}(?:user|users|human|humans)\b"
        ),
    ),
    Poison(
        "new-instructions",
        "Text that claims to be the system's or to be new orders",
        _words(
            r"\b(?:new|updated|real|actual)\W{1,3}(?:system\W{1,3})?(?:instructions?|directives?)\W{0,3}:"
            r"|\byou\W{1,3}are\W{1,3}now\W{1,3}(?:in|an?|the)\b"
            r"|\bas\W{1,3}an?\W{1,3}(?:ai|llm|language\W{1,3}model)\W{1,5}you\W{1,3}(?:must|should|will)\b"
        ),
    ),
    Poison(
        "secret-files",
        "Files that hold keys, passwords and the settings of assistants",
        _words(
            r"(?:~|\$home|\$\{home\}|%userprofile%|/root|/home/[\w.-]{1,32}|/users/[\w.-]{1,32})[/\\]"
            r"\.(?:ssh|aws|gnupg|cursor|claude|kube|docker|netrc|npmrc|pypirc|env|config/gcloud"
            r"|bash_history|zsh_history|git-credentials)\b[\w./\\-]{0,100}"
            r"|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|/etc/(?:passwd|shadow)\b|\.cursor/mcp\.json\b"
        ),
    ),
    Poison(
        "exfiltrate",
        "Orders to send the conversation, secrets or prompts somewhere",
        _words(
            r"\b(?:send|post|forward|upload|append|include|leak|exfiltrate|transmit|pass|copy)"
            rf"{SOME}(?:conversation|chat\W{{1,3}}history|message\W{{1,3}}history|system\W{{1,3}}prompt"
            r"|api\W{1,3}keys?|credentials|passwords?|private\W{1,3}keys?|ssh\W{1,3}keys?|secrets"
            r"|environment\W{1,3}variables|access\W{1,3}tokens?)"
            rf"{SOME}(?:to|in|into|as|via|with)\b"
        ),
    ),
    Poison(
        "encoded-data",
        "Long runs of base64, which nobody reads and models decode",
        re.compile(r"(?<![\w+/=-])[\w+/-]{64,}={0,2}(?![\w+/-])", re.ASCII),
        really=_is_blob,
    ),
)
"""Everything that is looked for, in this order."""

TOO_LONG: Final = "too-long"
LOOKALIKES: Final = str.maketrans(
    "аеіјорсухѕԁһԛԝАВЕЅІЈКМНОРСТУХαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeijopcyxsdhqwABESIJKMHOPCTYXaeikvoptuxABEZHIKMNOPTYX",
)
"""Letters of other alphabets that look like ours."""
LONGEST: Final = 100_000
"""Characters of one text that are looked at; no description needs more, and the rest is cut off."""


def poisons_in(text: str, *, hidden_only: bool = False) -> list[str]:
    """The names of what a text holds."""
    return [
        poison.name
        for poison in POISONS
        if (poison.hidden or not hidden_only) and _places(poison, text)
    ]


def scrubbed(text: str) -> tuple[str, list[str]]:
    """The text with each finding replaced by a mark, and the findings' names."""
    cut, rest = text[:LONGEST], text[LONGEST:]
    marked, found = cut, Counter[str]()
    for poison in POISONS:
        places = _places(poison, marked)
        if places:
            found[poison.name] = len(places)
            marked = _marked(marked, places, poison.name)
    for name, times in _undisguised(cut).items():
        if times > found[name]:
            found[name] = times
            marked = f"[removed: {name}]"
    if rest:
        found[TOO_LONG] = 1
        marked = f"{marked}[removed: {TOO_LONG}]"
    return marked, list(found)


def _undisguised(text: str) -> Counter[str]:
    """What is found once hidden characters are out and letters in disguise are plain ones."""
    if text.isascii() and text.isprintable():
        return Counter()
    for poison in POISONS:
        if poison.hidden:
            text = poison.found.sub("", text)
    plain = unicodedata.normalize("NFKC", text).translate(LOOKALIKES)
    named = {poison.name: len(_places(poison, plain)) for poison in POISONS if not poison.hidden}
    return Counter({name: times for name, times in named.items() if times})


def _places(poison: Poison, text: str) -> list[tuple[int, int]]:
    really = poison.really
    return [
        found.span() for found in poison.found.finditer(text) if really is None or really(found[0])
    ]


def _marked(text: str, places: list[tuple[int, int]], name: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in places:
        parts += [text[at:start], f"[removed: {name}]"]
        at = end
    return "".join([*parts, text[at:]])


logger = logging.getLogger("folkmoot.proxy")

LISTS: Final = {
    TOOLS_LIST: "tools",
    PROMPTS_LIST: "prompts",
    RESOURCES_LIST: "resources",
    TEMPLATES_LIST: "resourceTemplates",
}
"""Methods whose answers list things with descriptions, and where."""
GREETINGS: Final = frozenset({INITIALIZE, DISCOVER})
"""Methods whose answers hold instructions for the model."""
TEXTS: Final = frozenset({"description", "title", "instructions"})
"""Members that are there to be read; a mark in them changes nothing else."""
NOT_READ: Final = frozenset({"icons", "_meta"})
"""Members that models are not shown."""
MOST_TOLD: Final = 1_024


class ScrubOptions(Options, frozen=True, kw_only=True):
    """What happens to a description with a finding."""

    mode: Literal["mark", "drop", "report"] = "mark"


class Scrub(Action):
    """Marks, drops or reports what is hidden in descriptions; its cost grows with their size.

    What is hidden in a name or another value that means something cannot be marked, so such a tool,
    prompt or resource is left out.
    """

    def __init__(self, options: ScrubOptions, _means: Means) -> None:
        self._mode = options.mode
        self._told: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def concerns(self, key: MessageKey) -> bool:
        """Answers that describe something to a model."""
        return key.root == RESPONSE and (key.method in LISTS or key.method in GREETINGS)

    async def look(self, view: MessageView) -> Verdict:
        """Let the answer go on without what does not belong there."""
        result = view.result
        if not isinstance(result, dict):
            return CONTINUE
        member = LISTS.get(view.key.method)
        if member is None:
            return self._greeting(view, result)
        listed = result.get(member)
        if not isinstance(listed, list):
            return CONTINUE
        kept = [item for item in map(self._item, listed) if item is not None]
        if len(kept) == len(listed) and all(a is b for a, b in zip(kept, listed, strict=True)):
            return CONTINUE
        return view.with_member("result", {**result, member: kept})

    def _item(self, item: Any) -> Any:
        """One listed item after scrubbing; None if it is removed."""
        cleaned, names, broken = clean(item)
        if not names:
            return item
        self._tell(item, names)
        if self._mode == "report":
            return item
        return None if broken or self._mode == "drop" else cleaned

    def _greeting(self, view: MessageView, result: dict[str, Any]) -> Verdict:
        cleaned, names, _ = clean(result)
        if not names:
            return CONTINUE
        self._tell(view.key.method, names)
        if self._mode == "report":
            return CONTINUE
        if self._mode == "drop":
            cleaned.pop("instructions", None)
        return view.with_member("result", cleaned)

    def _tell(self, what: Any, names: list[str]) -> None:
        name = what.get("name") or what.get("uri") if isinstance(what, dict) else what
        told = (truncated(name), *sorted(set(names)))
        if told in self._told:
            return
        if len(self._told) >= MOST_TOLD:
            self._told.popitem(last=False)
        self._told[told] = None
        logger.warning(
            "a description has suspicious content",
            extra={"described": told[0], "found": ", ".join(told[1:]), "mode": self._mode},
        )


def poisons_of(item: Any) -> tuple[str, ...]:
    """The names of what the description of one listed thing holds and should not."""
    return tuple(sorted(set(clean(item)[1])))


def clean(value: Any, *, text: bool = False) -> tuple[Any, list[str], bool]:
    """A value with its texts scrubbed, what was found, and whether it was where no mark can be."""
    if isinstance(value, str):
        if text:
            cleaned, names = scrubbed(value)
            return (value if not names else cleaned), names, False
        names = poisons_in(value, hidden_only=len(value) <= SHORT)
        return value, names, bool(names)
    if isinstance(value, dict):
        return _clean_members(value)
    if isinstance(value, list):
        found = [clean(item) for item in value]
        return (
            [cleaned for cleaned, _, _ in found],
            [name for _, names, _ in found for name in names],
            any(broken for _, _, broken in found),
        )
    return value, [], False


SHORT: Final = 40
"""Up to this many characters a value that means something is no text in disguise."""


def _clean_members(value: dict[str, Any]) -> tuple[Any, list[str], bool]:
    cleaned: dict[str, Any] = {}
    found: list[str] = []
    broken = False
    for name, inner in value.items():
        in_name = poisons_in(name, hidden_only=len(name) <= SHORT)
        found += in_name
        if name in NOT_READ:
            cleaned[name] = inner
            continue
        cleaned[name], names, at_value = clean(inner, text=name in TEXTS)
        found += names
        broken = broken or at_value or bool(in_name)
    return cleaned, found, broken
