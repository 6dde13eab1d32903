"""Where something was left out of a tape, and why."""

from __future__ import annotations

import msgspec


class RedactedPlace(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A place in a line of a tape where something was left out."""

    path: str
    """Leads to it, `$` being the part; `::` stands where it goes on inside JSON in a string."""
    kind: str
    """How it was known: by its form, its name, as mail, or by a path that was configured."""
    part: str = "message"
    """Which member of the line the path leads into."""
