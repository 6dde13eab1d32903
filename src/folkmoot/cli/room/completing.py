"""What Tab can complete: the names of those who are here, and the commands of the input line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from folkmoot.cli.room.rights import Holder
from folkmoot.cli.room.slash import offered


class Names(Completer):
    """Completes `@name`, and `/command` at the beginning of the line."""

    def __init__(self, names: Callable[[], Iterable[Any]], holder: Holder) -> None:
        self._names = names
        self._holder = holder

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterator[Completion]:
        """What the last word may become."""
        text = document.text_before_cursor
        word = text.rpartition(" ")[2]
        known = [f"@{name}" for name in sorted(self._names())] if word.startswith("@") else []
        if word == text and word.startswith("/"):
            known = [f"/{name}" for name in offered(self._holder)]
        for each in known:
            if each.startswith(word):
                yield Completion(each, start_position=-len(word))
