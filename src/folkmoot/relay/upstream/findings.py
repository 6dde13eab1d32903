"""What descriptions of a server hold that they should not, looked for within bounds.

The patterns are those of the interceptor `scrub-descriptions`. Definitions that were looked at
before are known by their hash, so a list that is read again costs next to nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

import msgspec

from folkmoot.gateway.apart import AT_ONCE, apart
from folkmoot.gateway.model import Definition, What
from folkmoot.proxy.interceptors.poison import TOO_LONG
from folkmoot.proxy.interceptors.scrub import poisons_of

Findings: TypeAlias = dict[What, dict[str, tuple[str, ...]]]
"""By list, and by the server's own name or URI; entries with nothing to tell are not in it."""

MOST_BYTES: Final = 32 * 1024
"""Of one definition; a longer one is not looked at, and is told to be too long."""
MOST_NEW_BYTES: Final = 4 * 1024 * 1024
"""Of all definitions that were not looked at before; the rest has its turn the next time."""
FEW_BYTES: Final = 4 * 1024
"""What is looked at in the loop, in some milliseconds; more is left to a thread."""
MOST_KNOWN: Final = 20_000

KEYS: Final[dict[What, str]] = {
    "tools": "name",
    "resources": "uri",
    "templates": "uriTemplate",
    "prompts": "name",
}


@lru_cache(maxsize=256)
def in_instructions(said: str) -> tuple[str, ...]:
    """What the instructions of a server hold that they should not."""
    return poisons_of({"instructions": said})


class Looking:
    """Looks at what one server lists, and remembers what was found in which definition."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[str, ...]] = OrderedDict()

    async def found_in(
        self, lists: Mapping[What, Sequence[Definition]], size: int
    ) -> tuple[Findings, int]:
        """What was found, and how many definitions were not looked at; `size` is in bytes."""
        return await apart(size * AT_ONCE // FEW_BYTES, self._look, lists)

    def _look(self, lists: Mapping[What, Sequence[Definition]]) -> tuple[Findings, int]:
        findings: Findings = {}
        skipped, left = 0, MOST_NEW_BYTES
        for what, entries in lists.items():
            for entry in entries:
                text = msgspec.json.encode(entry)
                digest = blake2b(text, digest_size=16).digest()
                found = self._known.pop(digest, None)
                if found is None:
                    if len(text) > MOST_BYTES:
                        found = (TOO_LONG,)
                    elif len(text) > left:
                        skipped += 1
                        continue
                    else:
                        left -= len(text)
                        found = poisons_of(entry)
                self._known[digest] = found
                if found:
                    findings.setdefault(what, {})[entry[KEYS[what]]] = found
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return findings, skipped
