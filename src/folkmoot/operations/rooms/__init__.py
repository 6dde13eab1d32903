"""The operations of rooms, each module with its structs and declared functions.

`membership` lists, makes, joins and leaves rooms, and `settings` shows and changes them; `messages`
and `calls` are for talking and calling tools in a room; `proposals` makes proposals and decides
them, `invitations` asks people in, `rights` grants and revokes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading

if TYPE_CHECKING:
    from folkmoot.operations.rooms import (
        calls,
        invitations,
        membership,
        messages,
        proposals,
        rights,
        settings,
    )
else:
    __getattr__ = loading(__name__, {})
