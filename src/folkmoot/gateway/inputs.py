"""Wishes for input, tied to whom they were told: nobody takes up another's call.

A server answers a call with a wish and a `requestState`, and knows the call again by it. What the
caller is given in its place says for whom and for what it was made.
"""

from __future__ import annotations

import hmac
from hashlib import blake2b
from typing import Any, Final

from folkmoot.core.errors import InputStateInvalid

INPUT_REQUIRED: Final = "input_required"
STATE: Final = "requestState"
RESPONSES: Final = "inputResponses"
MARK_BYTES: Final = 16
MOST_STATE: Final = 256 * 1024


class Inputs:
    """Marks the states of wishes, and knows the marks again."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def told(self, result: dict[str, Any], person: str, what: str) -> dict[str, Any]:
        """A result as its caller gets it; one that is no wish for input, or has no state, as is."""
        state = result.get(STATE)
        if result.get("resultType") != INPUT_REQUIRED or type(state) is not str:
            return result
        return {**result, STATE: f"{self._mark(state, person, what)}.{state}"}

    def taken(self, params: dict[str, Any], person: str, what: str) -> dict[str, Any]:
        """The params of a repeated call as the server gets them; others as they are."""
        if STATE not in params:
            return params
        given = params[STATE]
        mark, dot, state = given.partition(".") if type(given) is str else ("", "", "")
        known = len(state) <= MOST_STATE and hmac.compare_digest(
            mark.encode("utf-8", "replace"), self._mark(state, person, what).encode()
        )
        if not dot or not known:
            raise InputStateInvalid("This requestState is not valid for this call.")
        return {**params, STATE: state}

    def _mark(self, state: str, person: str, what: str) -> str:
        said = "\0".join((person, what, state)).encode("utf-8", "surrogatepass")
        return blake2b(said, key=self._key, digest_size=MARK_BYTES).hexdigest()
