"""A hub whose endpoint is recorded and intercepted like any server behind a proxy."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.core.message import Request, Response
from folkmoot.core.transport import HttpMetadata
from folkmoot.proxy.tape import Tape, read_tape
from tests.mcp_harness import both_eras, meeting, modern
from tests.proxy.tape.test_recorder_faults import full_at

SECRETS = ("Grüße im Vertrauen", "The answer nobody sees")


def tape_in(folder: Path) -> Tape:
    [path] = folder.glob("*.jsonl")
    return read_tape(path)


@pytest.mark.requirement("proxy.record", "proxy.record-no-secrets", "proxy.session-travels")
@both_eras
async def test_what_is_said_at_a_hub_is_recorded_without_mail_tokens_and_codes(era, tmp_path):
    tapes = tmp_path / "tapes"
    async with meeting(tmp_path / "hub", era, record={"folder": str(tapes)}) as there:
        stranger = await there.stranger()
        made = await stranger.call("msg_register", handle="cleo")
        alice, bob = await there.people("alice", "bob")
        sent = await alice.call("msg_send", to="bob", body=SECRETS[0])
        assert SECRETS[0] in str(await bob.call("msg_inbox"))
        await bob.call("msg_reply", message_id=sent["message_id"], body=SECRETS[1])
        await alice.call("msg_thread", thread_id=sent["thread_id"])
        opened = [made["token"], made["recovery_code"], alice.token, bob.token]
    tape = tape_in(tapes)
    written = next(iter(tapes.glob("*.jsonl"))).read_bytes()
    for secret in (*SECRETS, *opened):
        assert secret.encode() not in written
        assert secret.encode("unicode_escape") not in written
    # Who asks is known to rules, and is nothing of a tape's.
    assert b'"caller"' not in written
    assert not any(each.envelope.context.extensions for each in tape.entries)
    said = [each.message for each in tape.entries]
    calls = [it.params["name"] for it in said if getattr(it, "method", "") == "tools/call"]
    assert calls == ["msg_register", "msg_send", "msg_inbox", "msg_reply", "msg_thread"]
    assert tape.end is not None
    answered = {line.request for line in tape.correlations}
    asked = {each.seq for each in tape.entries if isinstance(each.envelope.message, Request)}
    assert asked <= answered
    named = [each.envelope.context.session.session_id for each in tape.entries]
    assert any(named) is (era == "handshake")
    for each in tape.entries:
        if isinstance(each.envelope.message, Response):
            assert each.envelope.context.session.protocol_version.value >= "2025-11-25"
    http = [each.envelope.context.transport.metadata for each in tape.entries]
    assert any(isinstance(each, HttpMetadata) and each.uri.startswith("/mcp") for each in http)


async def test_a_hub_whose_tape_cannot_be_written_serves_nothing_at_its_endpoint(tmp_path):
    tapes = tmp_path / "tapes"
    async with meeting(tmp_path / "hub", "stateless", record={"folder": str(tapes)}) as there:
        message, headers = modern("tools/list")
        assert (await there.post(message, headers=headers)).status == 200
        with full_at(next(iter(tapes.glob("*.jsonl"))).stat().st_size + 10):
            got = await there.post(message, headers=headers)
        assert got.status == 503
        assert "tape" in got.text
        # Room that comes later does not undo that messages are missing.
        assert (await there.post(message, headers=headers)).status == 503
    assert len(tape_in(tapes).entries) == 2


async def test_a_hub_may_go_on_without_its_tape(tmp_path):
    record = {"folder": str(tmp_path / "tapes"), "best_effort": True}
    async with meeting(tmp_path / "hub", "stateless", record=record) as there:
        message, headers = modern("tools/list")
        with full_at(0):
            assert (await there.post(message, headers=headers)).status == 200
