"""A hub with one tool more, `msg/nothing`, which does nothing: what is left is the cost of a call.

`python -m benchmarks.nothing serve …` is the command `folkmoot serve …` of such a hub.
"""

from __future__ import annotations

from msgspec import Struct

from folkmoot.cli import main as command_line
from folkmoot.operations.call import Call
from folkmoot.operations.declare import Topic
from folkmoot.operations.row import Absent
from folkmoot.operations.table import CATALOGUE, OPERATIONS

MEASURED = Absent("It is measured as a tool.")


class Done(Struct, frozen=True):
    """What a call answers that does nothing."""

    done: bool = True


@Topic(scope="mail.read").reads("msg/nothing", MEASURED, commands=MEASURED)
async def nothing(_: Call) -> Done:
    """Do nothing."""
    return Done()


def main() -> None:
    """Run the command, with the tool in the table."""
    CATALOGUE.__init__((*OPERATIONS, *nothing.rows))  # type: ignore[misc]
    command_line()


if __name__ == "__main__":
    main()
