"""Which conversation a request belongs to."""

from __future__ import annotations

import pytest

from folkmoot.clock import SystemClock
from folkmoot.core.transport import Headers
from folkmoot.proxy.sessions import SessionLimits, SessionManager
from folkmoot.relay.conversation import HttpConversations


@pytest.mark.requirement("proxy.session-travels")
def test_in_an_era_without_sessions_nobody_appears_as_one_by_naming_it():
    clock = SystemClock()
    talks = HttpConversations(SessionManager(clock, SessionLimits()), clock)
    named = ("mcp-session-id", "made-up")
    stateless = talks.of(Headers.of([named, ("mcp-protocol-version", "2026-07-28")]))
    assert stateless.session.context.session_id is None
    talks.heard(stateless, "POST", 200, {})
    assert len(talks) == 0
    before = talks.of(Headers.of([named, ("mcp-protocol-version", "2025-11-25")]))
    assert before.session.context.session_id is not None
