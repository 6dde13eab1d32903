"""Affinity: which conversation knows of a call that the server wants input for."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from folkmoot.core.message import Response
    from folkmoot.relay.upstream.conversation import Conversation

MOST: Final = 1024
"""Calls that are remembered; the oldest are forgotten, and go wherever there is room."""
STATE: Final = "requestState"


class Affinity:
    """By the state that the server gave, which comes back with the input."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, ReferenceType[Conversation]] = OrderedDict()

    def note(self, response: Response, conversation: Conversation) -> None:
        """Remember where an answer came from that wants input."""
        result = response.result
        state = result.get(STATE) if type(result) is dict else None
        if type(state) is str:
            self._known[state] = ref(conversation)
            if len(self._known) > MOST:
                self._known.popitem(last=False)

    def of(self, params: dict[str, Any]) -> Conversation | None:
        """The conversation that a repeated call belongs to."""
        state = params.get(STATE)
        known = self._known.get(state) if type(state) is str else None
        return None if known is None else known()
