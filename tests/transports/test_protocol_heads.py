"""Heads of answers, and when they leave."""

from __future__ import annotations

from typing import Any, cast

import pytest

from folkmoot.transports.limits import MAX_JOINED_BYTES
from folkmoot.transports.protocol import HeadLines, JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Connection:
    """Writes down what is written."""

    closed = False

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def joined() -> tuple[JoinedWrites, Connection]:
    connection = Connection()
    return JoinedWrites(cast("Any", connection)), connection


LONG = b"x" * (MAX_JOINED_BYTES + 1)


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        ((HEAD, b"he", b"llo"), [HEAD + b"he", b"llo"]),
        ((HEAD, b""), [HEAD]),
        # The head of a stream does not wait for its first event.
        ((STREAM, b"5\r\nhello\r\n"), [STREAM, b"5\r\nhello\r\n"]),
        # A long body is not copied.
        ((HEAD, LONG), [HEAD, LONG]),
    ],
)
def test_a_head_leaves_with_the_first_part_of_its_body(parts, written):
    answer, connection = joined()
    for part in parts:
        answer.write(part)
    assert connection.written == written
    assert connection.written[-1] is parts[-1] or len(parts[-1]) < len(LONG)


def test_whoever_waits_to_send_a_body_is_told_at_once_to_go_on():
    answer, connection = joined()
    answer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert (len(connection.written), answer.status) == (1, 0)
    answer.write(HEAD)
    assert (len(connection.written), answer.status) == (1, 200)
    answer.flush()
    answer.flush()
    assert connection.written[1:] == [HEAD]


@pytest.mark.parametrize("client_goes", [False, True])
def test_a_head_that_was_taken_leaves_before_the_connection_closes_unless_the_client_went(
    client_goes,
):
    answer, connection = joined()
    answer.write(HEAD)
    assert not answer.is_closing()
    connection.closed = client_goes
    answer.close()
    assert answer.is_closing()
    assert connection.written == ([] if client_goes else [HEAD])


FRAME, REFERRER = b"x-frame-options: DENY\r\n", b"referrer-policy: no-referrer\r\n"


@pytest.mark.parametrize(
    ("own", "added"),
    [
        (b"", FRAME + REFERRER),
        (b"referrer-policy: origin\r\n", FRAME),
        (FRAME + b"referrer-policy: origin\r\n", b""),
        (b"x-other: referrer-policy:\r\n", FRAME + REFERRER),
    ],
)
def test_a_head_is_given_the_lines_that_it_has_not(own, added):
    answer, connection = joined()
    answer.lines = HeadLines((b"x-frame-options", b"DENY"), (b"referrer-policy", b"no-referrer"))
    answer.last = b"x-request-id: 1\r\n"
    first = b"HTTP/1.1 404 Not Found\r\n"
    answer.write(first + own + b"\r\n")
    assert connection.written == [first + own + added + b"x-request-id: 1\r\n\r\n"]
    assert answer.status == 404
