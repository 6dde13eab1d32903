"""Tool search by words: BM25 over names, descriptions and arguments.

SQLite's FTS5 is no faster, and neither splits `createIssue` nor knows what a caller may use.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop
from itertools import islice
from math import log
from typing import Any, Final

from msgspec import Struct

from folkmoot.gateway.catalogue import Catalogue
from folkmoot.gateway.listing import is_app_only
from folkmoot.gateway.model import Definition, ToolEntry
from folkmoot.gateway.part import BackendOffer

K1: Final = 1.2
B: Final = 0.6
"""The two constants of BM25: how soon a repeated word stops counting, and how much length does."""

NAME, TITLE, DESCRIPTION, ARGUMENT, ARGUMENT_TEXT = 4.0, 3.0, 1.0, 1.0, 0.4
"""What a word counts, by where it stands."""
BEGINNING: Final = 0.5
"""What a word counts that only begins with the one that was asked for."""

MOST_QUERY: Final = 512
MOST_TERMS: Final = 32
MOST_FOUND: Final = 40_000
"""Places where words were found, after which no more words are looked for."""
MOST_LONGER: Final = 64
"""Words that one word can be the beginning of."""
MOST_TEXT: Final = 4_000
MOST_READ: Final = 12_000
"""Characters that are read of one text, and of one tool."""
MOST_ARGUMENTS: Final = 64
FEW: Final = 20
"""Tools that are read in the loop."""
SHORTEST_BEGINNING: Final = 3

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Found(Struct, frozen=True):
    """A tool that was found, and how well it fits; only the order of scores means something."""

    entry: ToolEntry
    score: float


def own_tool(definition: Definition) -> ToolEntry:
    """A tool of the hub's own, as `tools/list` shows it, to be found like the others."""
    canonical: str = definition["title"]
    return ToolEntry(
        canonical=canonical,
        namespace=canonical.partition("/")[0],
        own=canonical,
        definition=definition,
        schema=definition["inputSchema"],
    )


class _Index:
    """The words of some tools."""

    def __init__(self, entries: Iterable[ToolEntry]) -> None:
        found = (e for e in entries if not e.quarantined and not is_app_only(e))
        self.entries = sorted(found, key=lambda entry: entry.canonical)
        self.lengths: list[float] = []
        """How much there is to read of each, by weight."""
        self.postings: dict[str, list[tuple[int, float]]] = {}
        for at, entry in enumerate(self.entries):
            words = _weighed(entry)
            self.lengths.append(sum(words.values()))
            for word, weight in words.items():
                self.postings.setdefault(word, []).append((at, weight))
        self.vocabulary = sorted(self.postings)

    def matching(self, term: str) -> Iterator[tuple[str, float]]:
        """The words a term stands for, and how much each of them counts."""
        if term in self.postings:
            yield term, 1.0
        if len(term) < SHORTEST_BEGINNING:
            return
        at = bisect_left(self.vocabulary, term)
        for word in islice(self.vocabulary, at, at + MOST_LONGER):
            if not word.startswith(term):
                return
            if word != term:
                yield word, BEGINNING


class _Corpus:
    """All that is searched in, numbered through."""

    def __init__(self, indexes: list[_Index]) -> None:
        self.entries = [entry for index in indexes for entry in index.entries]
        lengths = [length for index in indexes for length in index.lengths]
        average = sum(lengths) / max(len(lengths), 1)
        self.brakes = [K1 * (1 - B + B * length / average) for length in lengths]
        """What keeps long texts from counting more for their length."""
        self._parts: list[tuple[int, _Index]] = []
        begin = 0
        for index in indexes:
            self._parts.append((begin, index))
            begin += len(index.entries)

    def occurrences(self, term: str) -> dict[int, float]:
        """The documents with a term, and its weight in each."""
        found: dict[int, float] = {}
        for begin, index in self._parts:
            for word, share in index.matching(term):
                for number, weight in index.postings[word]:
                    at = begin + number
                    found[at] = found.get(at, 0.0) + share * weight
        return found


class Search:
    """Finds tools of the hub's own and of all backends; each is read when it is first needed."""

    def __init__(self, own: Iterable[ToolEntry] = ()) -> None:
        self._own = tuple(own)
        self._of_own: _Index | None = None
        self._catalogue = Catalogue()
        self._indexes: dict[BackendOffer, _Index] = {}
        self._corpus: _Corpus | None = None
        self._reading = asyncio.Lock()

    def renew(self, catalogue: Catalogue) -> None:
        """Search in another catalogue; what its unchanged parts say is not read again."""
        kept = self._indexes
        self._indexes = {part: kept[part] for part in catalogue.parts.values() if part in kept}
        self._catalogue = catalogue
        self._corpus = None

    async def ready(self) -> None:
        """Read what has not been read yet, where it holds nobody up; `find` would do it at once."""
        async with self._reading:
            for part in self._catalogue.present:
                if part not in self._indexes and len(part.tools) > FEW:
                    index = await asyncio.to_thread(_Index, part.tools.values())
                    self._indexes[part] = index

    def find(
        self, query: str, allowed: Callable[[ToolEntry], bool], limit: int = 10
    ) -> list[Found]:
        """The tools that fit best, best first, of those the caller is allowed."""
        corpus = self._corpus = self._corpus or _Corpus(self._all())
        total = len(corpus.entries)
        scores: dict[int, float] = {}
        read = 0
        for term in list(dict.fromkeys(words_of(query[:MOST_QUERY])))[:MOST_TERMS]:
            if read > MOST_FOUND:
                break
            occurrences = corpus.occurrences(term)
            read += len(occurrences)
            rarity = (K1 + 1) * log(1 + (total - len(occurrences) + 0.5) / (len(occurrences) + 0.5))
            for at, weight in occurrences.items():
                score = rarity * weight / (weight + corpus.brakes[at])
                scores[at] = scores.get(at, 0.0) + score
        # Entries are in the order of their names within a backend, so equals keep that order.
        ranked = [(-score, at) for at, score in scores.items()]
        heapify(ranked)
        found: list[Found] = []
        while ranked and len(found) < limit:
            score, at = heappop(ranked)
            if allowed(corpus.entries[at]):
                found.append(Found(corpus.entries[at], -score))
        return found

    def _all(self) -> list[_Index]:
        if self._of_own is None:
            self._of_own = _Index(self._own)
        for part in self._catalogue.present:
            if part not in self._indexes:
                self._indexes[part] = _Index(part.tools.values())
        return [self._of_own, *(self._indexes[part] for part in self._catalogue.present)]


def words_of(text: str) -> list[str]:
    """The words of a text or of a name, in lower case and in the singular."""
    return [_singular(word) for word in _WORD.findall(_CAMEL.sub(" ", text).casefold())]


def _singular(word: str) -> str:
    """A simple singular: what matters is that both numbers come to the same."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies") and len(word) > 4:
            return word[:-3] + "y"
        return word[:-2] if word.endswith(("xes", "ches", "shes", "sses", "zes")) else word[:-1]
    return word


def _weighed(entry: ToolEntry) -> dict[str, float]:
    """The words of a tool, with their weights."""
    counted: dict[str, float] = {}
    left = MOST_READ
    for text, weight in _fields(entry):
        read = text[: min(MOST_TEXT, left)]
        left -= len(read)
        for word in words_of(read):
            counted[word] = counted.get(word, 0.0) + weight
    return counted


def _fields(entry: ToolEntry) -> Iterator[tuple[str, float]]:
    definition = entry.definition
    yield entry.canonical, NAME
    titles = (definition.get("title"), definition.get("annotations", {}).get("title"))
    for title in dict.fromkeys(titles):
        if isinstance(title, str) and title != entry.canonical:
            yield title, TITLE
    yield definition.get("description", ""), DESCRIPTION
    arguments = entry.schema.get("properties", {})
    for name, schema in islice(arguments.items(), MOST_ARGUMENTS):
        yield name, ARGUMENT
        text: Any = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(text, str):
            yield text, ARGUMENT_TEXT
