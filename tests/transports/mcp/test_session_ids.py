from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.transports.limits import MAX_SESSION_ID
from folkmoot.transports.mcp.session_ids import SessionIds
from folkmoot.vault import Vault

KEY, CREDENTIAL = b"k" * 32, "ab" * 32
VERSION = "2025-11-25"
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}

ids = SessionIds(Vault(KEY, "mk"), "epoch")
made, _ = ids.make(1_700_000_000.5, CREDENTIAL, VERSION, CAPABILITIES)


@given(
    st.sampled_from(["", CREDENTIAL]),
    st.dictionaries(st.text(max_size=30), st.text(max_size=600) | st.integers(), max_size=6),
)
def test_an_id_says_what_it_was_made_of_and_is_short(shown_hash, capabilities):
    assert isinstance(capabilities, dict)
    session_id, complete = ids.make(7, shown_hash, VERSION, capabilities)
    assert len(session_id) <= MAX_SESSION_ID
    assert session_id.replace("-", "").replace("_", "").isalnum()
    said = ids.open(session_id)
    assert (said.born, said.shown_hash, said.version) == (7, shown_hash, VERSION)
    assert said.boot_id == ids.boot_id
    assert bool(said.capabilities) is complete


def test_the_id_of_a_usual_client_is_short_and_no_two_are_the_same():
    assert len(made) < 256
    assert made != ids.make(1_700_000_000.5, CREDENTIAL, VERSION, CAPABILITIES)[0]


@pytest.mark.requirement("mcp.unknown-session")
@given(st.integers(0, len(made) - 1), st.characters(max_codepoint=255))
def test_an_id_with_another_character_in_it_is_not_opened(place, other):
    changed = made[:place] + other + made[place + 1 :]
    assert (ids.open(changed) is not None) is (changed == made)


@pytest.mark.requirement("mcp.unknown-session")
@given(st.integers(0, len(made) - 1))
def test_a_truncated_id_is_not_opened(length):
    assert ids.open(made[:length]) is None
    assert ids.open(made[length:] if length else "") is None


@pytest.mark.requirement("mcp.unknown-session")
def test_an_id_has_one_spelling_and_one_hub():
    standard = made.replace("-", "+").replace("_", "/")
    for each in (f"{made}=", f"{made}==", f" {made}", f"{made}\n", f"{made}A", made * 2, "", "é"):
        assert ids.open(each) is None, each
    if standard != made:
        assert ids.open(standard) is None
    assert SessionIds(Vault(b"j" * 32, "mk"), "epoch").open(made) is None
    assert SessionIds(Vault(KEY, "mk"), "restored").open(made) is None
    assert SessionIds(Vault(KEY, "mk"), "epoch").open(made) == ids.open(made)


def test_what_is_sealed_for_something_else_is_no_id():
    other = Vault(KEY, "mk").seal("invite", "epoch", b"\x95\xc0")
    assert ids.open(other.rstrip("=")) is None
    assert ids.open(Vault(KEY, "mk").seal("mcp_session", "epoch", b"[]").rstrip("=")) is None
