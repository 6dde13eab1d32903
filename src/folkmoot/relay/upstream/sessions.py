"""How a server says that it has forgotten a session, so that it did nothing of what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.message import ErrorObject, Response
from folkmoot.core.transport import HttpMetadata

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope

SAID_WITH: Final = frozenset({400, 404})
"""The statuses it is said with: the second by the specification, the first by many servers."""
WORD: Final = "session"


def session_is_gone(answer: Response, envelope: MessageEnvelope[Any] | None) -> bool:
    """Whether an error of a server that has sessions only says that it does not know this one."""
    metadata = None if envelope is None else envelope.context.transport.metadata
    if not isinstance(metadata, HttpMetadata) or metadata.status not in SAID_WITH:
        return False
    return isinstance(answer.error, ErrorObject) and WORD in answer.error.message.lower()
