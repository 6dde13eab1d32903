"""Writing tapes."""

from __future__ import annotations

import stat

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Carried, Recorder
from folkmoot.core.session import ANONYMOUS, ProtocolVersion, SessionContext, SessionId
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.proxy.tape import TapeSide, new_name, read_tape
from tests.clocks import StillClock
from tests.proxy.tape.strategies import opened, record
from tests.proxy.tape.talk import SESSION, TO_CLIENT, answer, call, said, words

REDACTOR = TapeRedactor(b"k" * 32)


@pytest.mark.requirement("proxy.record")
@pytest.mark.parametrize("name", ["tape.jsonl", "tape.jsonl.zst"])
def test_a_tape_can_be_read_while_it_is_written(tmp_path, name):
    recorder: Recorder = (tape := opened(tmp_path / name))
    assert read_tape(tape.path).header.program == "p"
    for count in range(1, 5):
        recorder.note(call(count, "echo", text="x" * count))
        recorder.commit()
        read = read_tape(tape.path)
        assert len(read.entries) == count
        assert read.end is None
        assert not read.cut
    tape.close("the client left")
    end = read_tape(tape.path).end
    assert (end.reason, end.messages) == ("the client left", 4)
    assert end.ended == "2023-11-14T22:13:20.000Z"


def test_what_was_noted_is_written_when_it_is_committed_or_is_much(tmp_path):
    tape = opened(tmp_path / "tape")
    tape.note(call(1, "echo"))
    tape.note(call(2, "echo"))
    assert len(read_tape(tape.path).entries) == 0
    tape.commit()
    assert len(read_tape(tape.path).entries) == 2
    for number in range(9):
        tape.note(call(number, "echo", text="x" * 1_000_000))
    assert len(read_tape(tape.path).entries) == 11
    tape.note(call(3, "echo"))
    tape.close()
    assert len(read_tape(tape.path).entries) == 12


def test_a_tape_is_its_owners_alone_and_no_file_that_exists(tmp_path):
    path = tmp_path / "tape"
    path.write_bytes(b"mine")
    with pytest.raises(e.TapeUnwritable, match="already exists, and a tape is never overwritten"):
        opened(path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(e.TapeUnwritable):
        opened(link)
    assert path.read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere").exists()
    assert stat.S_IMODE(record(tmp_path / "new", []).stat().st_mode) == 0o600


def test_nothing_can_be_added_to_a_tape_that_was_closed(tmp_path):
    tape = opened(tmp_path / "tape")
    tape.close("first")
    tape.close("second")
    with pytest.raises(e.TapeUnwritable, match="was closed"):
        tape.note(call(1, "echo"))
    with pytest.raises(e.TapeUnwritable, match="was closed"):
        tape.commit()
    assert read_tape(tape.path).end.reason == "first"


def test_each_tape_of_a_folder_has_a_name_of_its_own(tmp_path):
    first, second = new_name(tmp_path, StillClock()), new_name(tmp_path, StillClock())
    assert first != second
    assert (first.parent, first.suffix) == (tmp_path, ".jsonl")
    assert first.name.startswith("20231114-221320-")


def test_the_answer_to_initialize_is_tied_to_it_though_only_it_has_the_session(tmp_path):
    stateless = SessionContext(protocol_version=ProtocolVersion("2026-07-28"))
    talk = [
        said({"id": 0, "method": "initialize"}, session=ANONYMOUS),
        said({"id": 0, "result": {}}, TO_CLIENT),
        said({"id": 0, "method": "a"}, session=stateless.with_correlation("x")),
        said({"id": 0, "method": "b"}, session=stateless.with_correlation("y")),
        said({"id": 0, "result": 1}, TO_CLIENT, session=stateless.with_correlation("y")),
        said({"id": 0, "result": 1}, TO_CLIENT, session=stateless.with_correlation("x")),
        said({"id": 0, "result": 1}, TO_CLIENT, session=SESSION),
        said({"id": None, "error": {"code": 1, "message": ""}}, TO_CLIENT),
    ]
    tape = read_tape(record(tmp_path / "tape", talk))
    assert [(c.request, c.response) for c in tape.correlations] == [(1, 2), (4, 5), (3, 6)]


@pytest.mark.requirement("proxy.record-no-secrets")
@pytest.mark.parametrize("another", [True, False])
def test_answers_are_tied_by_their_session_and_mail_is_left_out_of_any(tmp_path, another):
    """Also if two have requests of one id, or if a session gets another id by the answer."""
    mine, others = (
        SessionContext(SessionId(f"session-of-{who}"), correlation_id="client:1")
        for who in ("mine", "others")
    )
    inbox = {"name": "msg/inbox", "arguments": {}}
    mail = words('{"messages": [{"body": "The boat is ready."}]}')
    ping = [
        said({"id": 1, "method": "ping"}, session=others),
        said({"id": 1, "result": {}}, TO_CLIENT, session=others),
    ]
    talk = [
        said({"id": 1, "method": "tools/call", "params": inbox}, session=mine),
        *(ping if another else []),
        said({"id": 1, "result": mail}, TO_CLIENT, session=mine if another else others),
    ]
    path = record(tmp_path / "tape", talk, redactor=REDACTOR)
    ties = [(c.request, c.response) for c in read_tape(path).correlations]
    assert ties == ([(2, 3), (1, 4)] if another else [])
    assert "The boat" not in path.read_text()


@pytest.mark.requirement("proxy.record-no-secrets")
def test_the_id_of_a_session_in_use_is_not_forgotten_for_that_of_a_new_one(tmp_path):
    sessions = [SessionContext(SessionId(f"secret-session-{number:02}")) for number in range(20)]
    ping = {"id": 1, "method": "ping"}
    told = {"method": "notifications/message", "params": {"data": "of secret-session-01"}}
    spoken = [*sessions[:16] * 2, sessions[1], *sessions[16:]]
    talk = [said(ping, session=one) for one in spoken] + [said(told, session=sessions[15])]
    path = record(tmp_path / "tape", talk, redactor=REDACTOR)
    assert "secret-session-01" not in path.read_text()


def test_requests_with_one_id_are_answered_in_their_order(tmp_path):
    talk = [*(call(1, name) for name in "abc"), *[answer(1, 0)] * 4, call(1, "d"), answer(1, 0)]
    tape = read_tape(record(tmp_path / "tape", talk))
    told = [(c.request, c.name) for c in tape.correlations]
    assert told == [(1, "a"), (2, "b"), (3, "c"), (8, "d")]


def test_requests_that_are_never_answered_are_forgotten_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr("folkmoot.proxy.tape.recorder.MOST_OPEN", 2)
    talk = [call(n, "echo") for n in (1, 2, 3)] + [answer(n, 0) for n in (1, 2, 3)]
    tape = read_tape(record(tmp_path / "tape", talk))
    assert [c.request for c in tape.correlations] == [2, 3]


def test_many_connections_take_no_more_memory_than_few(tmp_path, monkeypatch):
    monkeypatch.setattr("folkmoot.proxy.tape.encode.MOST_PARTS", 8)
    sessions = [
        SessionContext(SessionId(str(number)), correlation_id=f"client:{number}")
        for number in range(50)
    ]
    talk = [said({"method": "x"}, session=session) for session in sessions * 2]
    tape = read_tape(record(tmp_path / "tape", talk))
    assert [entry.context.session for entry in tape.entries] == sessions * 2


def test_a_line_has_the_session_of_its_own_message_also_where_another_one_was_in_memory(tmp_path):
    told: list[str] = []
    tape = opened(tmp_path / "tape")
    for number in range(100):
        name = f"session {number}"
        # Nobody keeps this one, so that the next one may have its place.
        session = SessionContext(SessionId(name))
        for _ in range(3):
            tape.note(said({"method": "x"}, session=session))
            told.append(name)
        del session
    tape.close()
    entries = read_tape(tape.path).entries
    assert [str(entry.context.session.session_id) for entry in entries] == told


def test_a_sessions_id_is_found_in_its_messages_however_many_sessions_came_since(tmp_path):
    secret = "first-session-" + "x" * 20
    ids = [secret, *(f"another-session-{number:04d}-{'y' * 8}" for number in range(40)), secret]

    def asking(number: int, one: str) -> Carried:
        session = SessionContext(SessionId(one), correlation_id=f"{number}/client:{number}")
        params = {"name": "echo", "arguments": {"m": one}}
        return said({"id": number, "method": "tools/call", "params": params}, session=session)

    talk = [asking(number, one) for number, one in enumerate(ids)]
    # Each of them more than once: as something new, as something known, and after all others.
    talk = [*(each for each in talk for _ in range(3)), *talk]
    path = record(tmp_path / "tape", talk, redactor=REDACTOR)
    assert not any(one in path.read_text() for one in ids)


def test_a_number_that_is_a_secret_is_left_out_of_what_ties_answers_too(tmp_path):
    session = SessionContext(SessionId("1234567890"), correlation_id="client:1234567890")
    talk = [said({"id": 1234567890, "method": "ping"}, session=session)]
    path = record(tmp_path / "tape", talk, redactor=REDACTOR)
    assert read_tape(path).entries[0].context.session.correlation_id != "client:1234567890"
    assert '"correlation":"client:1234567890"' not in path.read_text()


def test_an_extension_that_is_no_json_is_told_by_its_type(tmp_path):
    carried = said({"method": "x"})
    envelope = carried.envelope.with_extension("caller", object()).with_extension("n", 1)
    for redactor in (None, REDACTOR):
        path = record(tmp_path / "tape", [type(carried)(envelope)], redactor=redactor)
        assert read_tape(path).entries[0].context.extensions == {"caller": "<object>", "n": 1}


def test_the_sides_are_told_without_what_would_open_them(tmp_path):
    server = TapeSide("stdio", "server --api-key hunter2hunter2 --verbose")
    tape = opened(tmp_path / "tape", server=server, redactor=REDACTOR)
    header = read_tape(tape.path).header
    assert header.server.target.startswith("server --api-key [redacted:")
    assert b"hunter2" not in tape.path.read_bytes()
    assert (header.redaction.mail, header.redaction.key) == (True, REDACTOR.key_id)


def test_words_are_kept_as_they_came_also_where_they_do_not_fit_on_a_line(tmp_path):
    raw = b' {"jsonrpc":"2.0",\r\n\t"id":1,"result":' + b'{"big":1180591620717411303424}}\n'
    seen = said(raw, TO_CLIENT)
    carried = said({"id": 1, "result": {}}, TO_CLIENT, at_server=seen.envelope.message)
    tape = read_tape(record(tmp_path / "tape", [seen, carried]))
    assert (tape.entries[0].message.raw, tape.entries[1].at_server.raw) == (raw, raw)
    assert (tmp_path / "tape").read_bytes().count(b"\n") == 4
    other = said(b'{"jsonrpc":"2.0",\r"method":"x"}')
    path = record(tmp_path / "tape", [other])
    assert b"\r" not in path.read_bytes()
    assert read_tape(path).entries[0].message.raw == other.envelope.message.raw
