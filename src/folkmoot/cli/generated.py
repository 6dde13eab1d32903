"""Commands that are generated from rows of the table of operations.

Made by `make docs` from the table of operations: what is changed here is written over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from folkmoot.cli.commands import Output, account_command, plain_answer

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient


@account_command
def digest(
    hub: HubClient,
) -> Output:
    """Read what is unread, in short."""
    return plain_answer(hub.get_digest())


COMMANDS: dict[str, Callable[..., None]] = {"digest": digest}
