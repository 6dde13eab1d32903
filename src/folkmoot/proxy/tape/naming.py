"""What tapes are called, and how they tell the time."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

SUFFIX = ".jsonl"
PACKED = ".zst"


def new_name(folder: Path, clock: Clock, suffix: str = SUFFIX) -> Path:
    """A name in a folder that no other tape has: the time, and something random."""
    moment = datetime.fromtimestamp(clock.now(), UTC)
    return folder / f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}{suffix}"


def numbered(path: Path, number: int) -> Path:
    """The name of the n-th tape beside `path`: `talk.jsonl`, then `talk.2.jsonl`."""
    if number == 1:
        return path
    packed = PACKED if path.name.endswith(PACKED) else ""
    plain = Path(path.name.removesuffix(packed))
    return path.with_name(f"{plain.stem}.{number}{plain.suffix}{packed}")


def new_id() -> str:
    """The id of a tape."""
    return str(uuid.uuid4())


def rfc3339(seconds: float) -> str:
    """A moment as people and programs read it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
