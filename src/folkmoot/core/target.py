"""Targets: whom a message must be addressed to for a capability to match it.

`"to": "files"` names a participant, `"to": "files-*"` several by a glob, and a list offers
alternatives. An allow speaks of a message whose recipients are all meant; a deny speaks of one as
soon as one of them is. A message for nobody in particular is for everyone, so no allow with a
target speaks of it, and every deny does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.glob import glob
from folkmoot.core.limits import MAX_TARGET, MAX_TARGETS

_TARGET: Final = re.compile(r"[a-z0-9_*-]+")


class Target:
    """One compiled target: a glob for each alternative."""

    __slots__ = ("_globs", "size")

    def __init__(self, source: Any) -> None:
        named = source if type(source) is list else [source]
        if not 0 < len(named) <= MAX_TARGETS or not all(map(_is_target, named)):
            raise e.ConstraintSyntax(
                f'"to" must be a participant\'s name, in which * may stand, or a list of 1 to '
                f"{MAX_TARGETS} of them."
            )
        self.size = len(named)
        self._globs = tuple(map(glob, named))

    def matches(self, to: Sequence[str], *, if_unclear: bool = False) -> bool:
        """Whether these recipients are meant; with `if_unclear`, whether any of them is."""
        if not to:
            return if_unclear
        enough = any if if_unclear else all
        return enough(any(one.matches(name) for one in self._globs) for name in to)

    def covers(self, other: Target) -> bool:
        """Whether everyone the other means is meant here."""
        return all(any(wide.covers(narrow) for wide in self._globs) for narrow in other._globs)

    def intersects(self, other: Target) -> bool:
        """Whether someone is meant by both."""
        return any(a.intersects(b) for a in self._globs for b in other._globs)


def _is_target(name: Any) -> bool:
    return type(name) is str and len(name) <= MAX_TARGET and bool(_TARGET.fullmatch(name))
