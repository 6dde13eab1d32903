from __future__ import annotations

from folkmoot.core.events import ACCOUNTS, GRANTS, about, subject
from folkmoot.core.ports import Event


def test_an_event_says_what_it_is_about():
    for pattern in (ACCOUNTS, GRANTS):
        where = subject(pattern, "u_17")
        assert where == pattern.replace("*", "u_17")
        assert about(Event(where, {})) == "u_17"
