"""Finds secrets in text and puts placeholders in their place.

A quick look at the bytes of a message comes first: most hold nothing that could be a secret.

Where two ways of knowing a secret overlap, the narrower one wins, so that a secret has the same
placeholder wherever it stands; unless the wider one holds more than that, which then goes whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Final, TypeAlias
from urllib.parse import unquote

from msgspec import field

from folkmoot.core.entity import Entity
from folkmoot.core.redaction import FORMS, NAMED_FORMS, OTHER_KIND, Form, kind_of, searcher
from folkmoot.proxy.redaction import search
from folkmoot.proxy.redaction.placeholders import PLACEHOLDER, Placeholders
from folkmoot.telemetry.redaction import SHORTEST

MAIL_PIECES: Final = ("msg", "_mode", "_message_b")
"""What mail is known by, as `mail` knows it."""
TEXT_FORMS: Final = (*FORMS, *NAMED_FORMS)


def may_hold_secret(raw: bytes, known: search.Pieces = search.NO_PIECES) -> bool:
    """Whether something in these bytes could be a secret, or mail, or has one of those pieces."""
    # As Latin-1 every byte is a character, which cannot fail.
    text = raw.decode("latin-1")
    return known.any_in(text) or searcher(*MAIL_PIECES)(text)


Span: TypeAlias = tuple[int, int]
Secrets: TypeAlias = tuple[tuple[str, str], ...]

SESSION_KIND: Final = "session"

MOST_KNOWN: Final = 16
"""How many credentials are remembered, to be found wherever they turn up; the oldest goes first."""
SHORTEST_KNOWN: Final = 8
LONGEST_PIECE: Final = 64
"""Of a longer credential, so many characters are looked for at first."""
MOST_OVERLAPPING: Final = 64
MOST_FOUND: Final = 4096
"""A text in which more is found goes as a whole, before it takes too long."""

_SCHEME: Final = re.compile(r"\s*(?:bearer|basic|digest|negotiate|token|apikey)\s+", re.IGNORECASE)
_WORD: Final = re.compile(r"\w")
_ESCAPE: Final = re.compile(r"\\+u00([0-9a-fA-F]{2})")
_ESCAPED: Final = re.compile(r"\\+([\"/])")
_ESCAPABLE: Final = re.compile(r"[^ -~]|[\"/\\]")
"""What JSON may spell in a way of its own, besides `\\u00…`, which is suspicious by itself."""
_NO_VALUES: Final = frozenset(
    {"", "null", "true", "false", "none", "undefined", "bearer", "basic", "digest", "negotiate"}
)


class TextRedactor(Entity):
    """Redacts text. Credentials that were seen once are found again without their name."""

    placeholders: Placeholders
    _known: OrderedDict[str, str] = field(default_factory=OrderedDict)
    known: search.Pieces = field(default_factory=search.Pieces)
    """A piece of each remembered credential, as it stands in messages."""
    noticed: list[tuple[str, str]] | None = None
    """What was to be remembered, for as long as someone wants to know it."""

    def remember(self, secret: str, kind: str | None = None) -> None:
        """Find this secret from now on wherever it stands."""
        if len(secret) < SHORTEST_KNOWN or PLACEHOLDER.search(secret):
            return
        fresh = secret not in self._known
        kind = self._known[secret] = kind or kind_of(secret)
        self._known.move_to_end(secret)
        if self.noticed is not None:
            self.noticed.append((secret, kind))
        if fresh:
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
            self.known = search.Pieces(map(_surely, self._known))

    def recall(self, secrets: Secrets) -> None:
        """Remember these secrets again."""
        for secret, kind in secrets:
            if secret in self._known:
                self._known.move_to_end(secret)
            else:
                self.remember(secret, kind)

    def mask(
        self,
        text: str,
        *,
        forms_only: bool = False,
        also: Collection[str] = (),
        known: bool = True,
    ) -> str:
        """The text with a placeholder for each secret, and for these further values.

        Credentials that were seen before are secrets, too, unless they are not to be `known`.
        """
        if len(text) < SHORTEST or search.is_encoded(text):
            return text
        found: Iterable[Span] = (span for secret in also for span in _all(text, secret))
        if self._suspects(text):
            forms = FORMS if forms_only else TEXT_FORMS
            found = chain(found, self._found(text, forms, known=known))
        return self._without(text, found)

    def whole(self, text: str) -> str:
        """A text that is a secret as a whole, but for the word that says how it is used."""
        if not text or PLACEHOLDER.fullmatch(text):
            return text
        found = self._found(text, FORMS) if self._suspects(text) else ()
        return self._without(text, chain(found, [(0, len(text))]))

    def credential(self, text: str) -> str:
        """A text that is a secret as a whole and is to be found again elsewhere."""
        scheme = _SCHEME.match(text)
        self.remember(text[scheme.end() :] if scheme else text)
        return self.whole(text)

    def session(self, text: str) -> str:
        """The id of a session, which is to be found again elsewhere."""
        if not text:
            return text
        self.remember(text, SESSION_KIND)
        return self.placeholders.of(text, SESSION_KIND)

    def of_kind(self, text: str, kind: str) -> str:
        """The placeholder of a text that is of a kind, whatever it looks like."""
        return self.placeholders.of(text, kind) if text else text

    def _suspects(self, text: str) -> bool:
        return may_hold_secret(text.encode("utf-8", "surrogatepass"), self.known)

    def _found(self, text: str, forms: tuple[Form, ...], *, known: bool = True) -> Iterator[Span]:
        small = search.folded(text)
        for form in forms:
            for match in search.matches(form, text, small):
                yield _secret_in(match)
        for secret in self._known if known else ():
            yield from _all(text, secret)

    def _without(self, text: str, found: Iterable[Span]) -> str:
        spans = list(islice(found, MOST_FOUND))
        if len(spans) == MOST_FOUND:
            return self.placeholders.of(text, OTHER_KIND)
        return self._replaced(text, spans) if spans else text

    def _replaced(self, text: str, spans: list[Span]) -> str:
        held = [match.span() for match in PLACEHOLDER.finditer(text)]
        wanted = sorted(span for span in set(spans) if _counts(text, span, held))
        parts, at = [], 0
        for start, end in _joined([*held, *_settled(text, wanted, held)]):
            parts += [text[at:start], self._placeholder(text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _placeholder(self, found: str) -> str:
        secret = _spelled_plainly(found)
        return self.placeholders.of(secret, self._known.get(secret) or kind_of(secret))


def _surely(secret: str) -> str:
    """A piece of a secret, as long as possible, that JSON does not spell in a way of its own."""
    return max(_ESCAPABLE.split(secret), key=len)[:LONGEST_PIECE]


def _all(text: str, secret: str) -> Iterator[Span]:
    """Everywhere a secret stands, also in JSON that is a part of the text."""
    spellings = {secret}
    if "\\" in text:
        quoted = secret.replace("\\", "\\\\").replace('"', '\\"')
        spellings |= {quoted, quoted.replace("/", "\\/")}
    for spelled in spellings:
        at = text.find(spelled)
        while at >= 0:
            yield at, at + len(spelled)
            at = text.find(spelled, at + len(spelled))


def _secret_in(match: re.Match[str]) -> Span:
    """Where the secret is in what a form found: behind its name and the quote."""
    groups = match.groupdict()
    last = next((group for group in ("quote", "kept") if groups.get(group) is not None), None)
    return (match.end(last) if last else match.start()), match.end()


def _counts(text: str, span: Span, held: list[Span]) -> bool:
    """Whether there is a secret in a span, and not only a placeholder or no value at all."""
    if text[slice(*span)].strip().lower() in _NO_VALUES:
        return False
    before = bisect_right(held, span[0], key=lambda known: known[0]) - 1
    return before < 0 or held[before][1] < span[1]


def _joined(spans: list[Span]) -> Iterator[Span]:
    """Spans in order, with overlapping ones merged."""
    joined: Span | None = None
    for span in sorted(spans):
        if joined is not None and span[0] < joined[1]:
            joined = joined[0], max(joined[1], span[1])
            continue
        if joined is not None:
            yield joined
        joined = span
    if joined is not None:
        yield joined


def _settled(text: str, spans: list[Span], held: list[Span]) -> Iterator[Span]:
    """Of spans in their order, those to replace: none of them overlaps another."""
    cluster: list[Span] = []
    reach = -1
    for span in spans:
        if span[0] >= reach and cluster:
            yield from _chosen(text, cluster, held)
            cluster = []
        cluster.append(span)
        reach = max(reach, span[1])
    if cluster:
        yield from _chosen(text, cluster, held)


def _chosen(text: str, cluster: list[Span], held: list[Span]) -> list[Span]:
    """The narrowest spans of those that overlap, or wider ones where they hold more."""
    if len(cluster) > MOST_OVERLAPPING:
        return [_around(cluster)]
    chosen: list[Span] = []
    for start, end in sorted(cluster, key=lambda span: span[1] - span[0]):
        scheme = _SCHEME.match(text, start, end)
        begin = scheme.end() if scheme else start
        within = [span for span in chosen if span[0] < end and begin < span[1]]
        covered = within + [span for span in held if span[0] < end and begin < span[1]]
        if covered and not _WORD.search(_without(text, (begin, end), covered)):
            continue
        chosen = [span for span in chosen if span not in within]
        chosen.append(_around([(begin, end), *covered]))
    return chosen


def _around(spans: list[Span]) -> Span:
    return min(start for start, _ in spans), max(end for _, end in spans)


def _without(text: str, span: Span, covered: list[Span]) -> str:
    left, at = [], span[0]
    for start, end in sorted(covered):
        left.append(text[at : max(at, start)])
        at = max(at, end)
    return "".join([*left, text[at : max(at, span[1])]])


def _spelled_plainly(secret: str) -> str:
    """A secret as it is where nothing had to be escaped."""
    if "%" in secret:
        secret = unquote(secret)
    if "\\u" in secret:
        secret = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), secret)
    if "\\" in secret:
        secret = _ESCAPED.sub(r"\1", secret)
    return secret
