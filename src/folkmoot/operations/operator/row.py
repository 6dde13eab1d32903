"""What the rows of an operator have in common."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from folkmoot.operations.row import Absent, Operation, says

operated = partial(
    Operation,
    scope="operate",
    who="operator",
    tool=Absent("Operating a hub is for people and their programs, not for models."),
)
"""A row of the operator's."""

Handle = Annotated[str, says("Whose account, by its handle (without @ prefix).")]
After = Annotated[str, says("Continue where an earlier answer ended: its `next`.")]
Reason = Annotated[str, says("Why, for the audit log.", max_length=500)]
