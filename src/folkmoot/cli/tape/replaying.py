"""What `tape serve` and `tape play` share: how much of a tape's time is kept."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

SLOWEST: Final = 100.0


def _scale(value: Any) -> float:
    try:
        scale = float(value)
    except ValueError:
        scale = -1.0
    if 0 <= scale <= SLOWEST:
        return scale
    raise typer.BadParameter(f"must be a number from 0 to {SLOWEST:g}, not {value!r}")


TimingOption = Annotated[
    float,
    typer.Option(
        "--timing", metavar="SCALE",
        help="Replay the pauses of the tape at this scale: 1 as recorded, 0.5 half as long. "
             " [default: 0, no pauses]",
        parser=_scale, show_default=False,
    ),
]  # fmt: skip
