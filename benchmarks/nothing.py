"""A hub with one tool more, `msg/nothing`, which does nothing: what is left is the cost of a call.

`python -m benchmarks.nothing serve …` is the command `folkmoot serve …` of such a hub.
"""

from __future__ import annotations

from msgspec import Struct

from folkmoot.cli import main as command_line
from folkmoot.operations.call import Call
from folkmoot.operations.row import Absent, Nothing, Operation
from folkmoot.operations.table import CATALOGUE, OPERATIONS


class Done(Struct, frozen=True):
    """What a call answers that does nothing."""

    done: bool = True


async def nothing(_: Call[Nothing]) -> Done:
    """Answer at once."""
    return Done()


NOTHING = Operation(
    name="msg/nothing",
    description="Do nothing.",
    takes=Nothing,
    gives=Done,
    handler=nothing,
    scope="mail.read",
    effect="reads",
    routes=Absent("It is measured as a tool."),
    commands=Absent("It is measured as a tool."),
)


def main() -> None:
    """Run the command, with the tool in the table."""
    CATALOGUE.__init__((*OPERATIONS, NOTHING))  # type: ignore[misc]
    command_line()


if __name__ == "__main__":
    main()
