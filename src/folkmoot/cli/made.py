"""Commands that are made from rows, since nobody has written them by hand.

Made by `make docs` from the table of operations: what is changed here is written over.
"""

from __future__ import annotations

from collections.abc import Callable

from folkmoot.cli.credentials import AsOption, UrlOption, signed_in
from folkmoot.cli.options import JsonOption
from folkmoot.cli.show import tell_answer


def digest(
    url: UrlOption = None,
    handle: AsOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Read what is unread, in short."""
    hub, _ = signed_in(url, handle)
    tell_answer(hub.get_digest(), as_json=as_json)


COMMANDS: dict[str, Callable[..., None]] = {"digest": digest}
