"""The operations of operators: the hub, people and grants, servers, held messages.

They are served on the operator's socket, and by commands where no hub runs; a hub, a stopped hub
and a proxy have those whose services they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading

if TYPE_CHECKING:
    from folkmoot.operations.operator import (
        data,
        grants,
        groups,
        held,
        hub,
        people,
        server_edits,
        servers,
        settings_edits,
    )
else:
    __getattr__ = loading(__name__, {})
