"""Answers that are written at once, and bodies that are taken at once, beside the usual way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from folkmoot.mcp.server.responses import HttpReply
from folkmoot.transports.bodies import body_at_once, read_body
from folkmoot.transports.limits import MAX_JOINED_BYTES
from folkmoot.transports.protocol import DirectReceive, DirectSend, JoinedWrites
from tests.harness import Answer, reached, read_answer, serving

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OF_THE_MOMENT = ("date", "x-request-id")


class Echo:
    """Answers with the body, as often as the query says, and counts the bodies it had at once."""

    begun = at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = body_at_once(receive)
        self.at_once += body is not None
        self.begun += 1
        if body is None:
            body = await read_body(receive)
        assert body is not None
        session = [(b"mcp-session-id", b"one")]
        said = body.decode() * int(scope["query_string"] or 1)
        async with asyncio.TaskGroup() as tasks:
            await HttpReply(send, tasks, session).answer({"said": said})


def hidden(app: ASGIApp) -> ASGIApp:
    """The same behind someone who looks at what is sent and received."""

    async def between(scope: Scope, receive: Receive, send: Send) -> None:
        async def receiving() -> Message:
            return await receive()

        async def sending(message: Message) -> None:
            await send(message)

        await app(scope, receiving, sending)

    return between


ECHO = Echo()
SERVED = {"endpoints": {"/whole": ECHO, "/sent": hidden(ECHO)}}


def request(path: str, body: bytes, version: str = "1.1", *lines: str) -> bytes:
    head = [f"POST {path} HTTP/{version}", "host: localhost", f"content-length: {len(body)}"]
    return "\r\n".join([*head, *lines, "", ""]).encode() + body


def told(answer: Answer) -> tuple[int, dict[str, str], Any]:
    headers = {name: it for name, it in answer.headers.items() if name not in OF_THE_MOMENT}
    assert all(name in answer.headers for name in OF_THE_MOMENT)
    return answer.status, headers, answer.json()


@pytest.mark.parametrize("times", [1, MAX_JOINED_BYTES])
@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("1.1", []),
        ("1.1", ["connection: close"]),
        ("1.0", []),
        ("1.0", ["connection: keep-alive"]),
        ("1.1", ["expect: 100-continue"]),
    ],
)
async def test_an_answer_is_the_same_whether_it_is_written_at_once_or_sent(
    dial, times, version, lines
):
    answers = []
    for path in ("/whole", "/sent"):
        reader, _ = await dial(request(f"{path}?{times}", b"tide", version, *lines))
        while (answer := await read_answer(reader)).status == 100:
            pass
        answers.append(told(answer))
        if answer.headers.get("connection") == "close":
            assert await reader.read() == b""
    assert answers[0] == answers[1]
    assert answers[0][2] == {"said": "tide" * times}
    assert answers[0][1]["mcp-session-id"] == "one"


async def test_requests_that_come_at_once_are_answered_in_their_order_and_counted(dial, hub):
    before = ECHO.at_once
    paths = ["/whole", "/sent", "/whole", "/whole", "/sent", "/sent", "/whole"]
    reader, _ = await dial(b"".join(request(path, b"%d" % at) for at, path in enumerate(paths)))
    said = [(await read_answer(reader)).json()["said"] for _ in paths]
    assert said == [str(at) for at in range(len(paths))]
    assert ECHO.at_once > before
    counted = hub.metrics.exposition("")[0].decode()
    assert 'requests_total{method="POST",route="/whole",status="200"} 4.0' in counted
    assert 'requests_total{method="POST",route="/sent",status="200"} 3.0' in counted


async def test_a_body_that_comes_in_parts_is_waited_for(dial):
    before = ECHO.begun, ECHO.at_once
    sent = request("/whole", b"high water")
    reader, writer = await dial(sent[:-4])
    await reached(lambda: ECHO.begun > before[0])
    writer.write(sent[-4:])
    assert (await read_answer(reader)).json() == {"said": "high water"}
    assert ECHO.at_once == before[1]


async def test_a_second_answer_to_one_request_never_reaches_the_next():
    again, refused = asyncio.Event(), asyncio.Event()

    async def twice(scope: Scope, receive: Receive, send: Send) -> None:
        await ECHO(scope, receive, send)
        await again.wait()
        with pytest.raises(RuntimeError, match="already completed"):
            await HttpReply(send, asyncio.TaskGroup()).answer({"said": "one more"})
        refused.set()

    async with serving(endpoints={"/twice": twice, "/whole": ECHO}) as hub:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(request("/twice", b"one"))
        assert (await read_answer(reader)).json() == {"said": "one"}
        again.set()
        writer.write(request("/whole", b"two"))
        assert (await read_answer(reader)).json() == {"said": "two"}
        await refused.wait()
        writer.write(request("/whole", b"three"))
        assert (await read_answer(reader)).json() == {"said": "three"}
        writer.close()


class Cycle:
    """A request as the HTTP server has it."""

    def __init__(self, **state: Any) -> None:
        self.response_started = self.disconnected = self.more_body = False
        self.keep_alive = True
        self.flow = type("Flow", (), {"write_paused": False})()
        for name, value in state.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    "state",
    [
        {"response_started": True},
        {"disconnected": True},
        {"keep_alive": False},
        {"flow": type("Flow", (), {"write_paused": True})()},
    ],
)
def test_what_cannot_be_written_at_once_is_left_to_be_sent(state):
    answer = JoinedWrites(None)  # type: ignore[arg-type]
    send = DirectSend(Cycle(**state), answer)  # type: ignore[arg-type]
    assert not send.write_whole(200, b"", b"{}")
    assert answer.status == 0


@pytest.mark.parametrize("state", [{"more_body": True}, {"disconnected": True}])
def test_what_cannot_be_taken_at_once_is_left_to_be_received(state):
    assert DirectReceive(Cycle(**state)).take_body() is None  # type: ignore[arg-type]
