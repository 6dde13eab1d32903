"""The id of what cannot be decoded: found in the usual places, and in no others."""

from __future__ import annotations

import pytest

from folkmoot.mcp.wire import answered_id, readable_id

DEEP = b"[" * 5000 + b"]" * 5000
LONE = rb'{"text":"\ud800"}'


@pytest.mark.parametrize(
    ("raw", "known"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":%b}' % DEEP, 7),
        (b'{"jsonrpc":"2.0","id":"a-7","result":%b}' % LONE, "a-7"),
        (b'{"id":-7,"jsonrpc":"2.0","error":%b}' % DEEP, -7),
        (b'{ "jsonrpc" : "2.0" , "result" : %b , "id" : 7 }\r' % DEEP, 7),
        (b'{"result":%b,"id":7,"jsonrpc":"2.0"}' % DEEP, 7),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"result":{}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"roots/list","params":%b}' % DEEP, None),
        (b'{"jsonrpc":"2.0","result":{"id":7,"result":%b}}' % DEEP, None),
        (b'{"jsonrpc":"2.0","id":12345678901234567890,"result":%b}' % DEEP, None),
        (rb'{"jsonrpc":"2.0","result":"\ud800,\"id\":7}', None),
        (b'{"jsonrpc":"2.0","id":7,"result"', None),
        (b'{"jsonrpc":"2.0","id":007,"result":%b}' % DEEP, None),
        (b"7", None),
    ],
)
def test_an_answer_that_cannot_be_read_is_tied_to_its_request(raw, known):
    assert answered_id(raw) == known


@pytest.mark.parametrize(
    ("raw", "known"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":%b}' % DEEP, 7),
        (b'{"jsonrpc":"2.0","method":"x","params":%b,"id":"7"}' % LONE, "7"),
        (b'{"jsonrpc":"2.0","id":7,"result":%b}' % DEEP, None),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_under_its_id(raw, known):
    assert readable_id(raw) == known
