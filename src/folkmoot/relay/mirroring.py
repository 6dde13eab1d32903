"""Headers that repeat a message, put right where an interceptor has made the message another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.core.message import Response
from folkmoot.core.transport import Headers
from folkmoot.transports.links.mirror import METHOD, NAME, VERSION, Mirror, stateless_version

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage

REPEATED: Final = frozenset({METHOD, NAME, VERSION})

_mirror: Final = Mirror()


def mirrored(headers: Headers, message: ProtocolMessage) -> Headers:
    """The headers of a request that says this now; only the stateless era has any to change."""
    version = stateless_version(message)
    if version is None or isinstance(message, Response):
        return headers
    kept = (pair for pair in headers if pair[0] not in REPEATED)
    return Headers((*kept, *_mirror.headers(message, version).items()))
