"""What a conversation remembers of requests until they are answered."""

from __future__ import annotations

from typing import Any

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import Request, Response
from folkmoot.core.session import ANONYMOUS
from folkmoot.core.timing import TimingContext
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.proxy.sessions import ProxySession
from folkmoot.relay import conversation as conversations
from folkmoot.relay.conversation import ProxyConversation
from tests.relay.carriers import TO_CLIENT, TO_SERVER, Scene

NOTE = "note"


def entered(
    conversation: ProxyConversation, message: Any, direction: MessageDirection = TO_SERVER
) -> dict[Any, Any]:
    """The notes of a message that came in."""
    context = MessageContext(TimingContext(0.0, 0.0), direction)
    return conversation.enter(MessageEnvelope(message, context)).context.notes


def test_an_answer_has_the_notes_of_its_request_and_of_no_other():
    conversation = ProxyConversation(ProxySession("s", ANONYMOUS, 0.0, 0.0))
    for number, way in ((1, TO_SERVER), ("1", TO_SERVER), (1, TO_CLIENT)):
        notes = entered(conversation, Request(id=number, method="ping"), way)
        assert not notes
        notes[NOTE] = number, way
    for number, way in ((1, TO_CLIENT), ("1", TO_SERVER), (1, TO_SERVER)):
        answer = Response(id=number, result={})
        assert entered(conversation, answer, way.reverse())[NOTE] == (number, way)
        conversation.answered(way.reverse(), answer)
        assert not entered(conversation, answer, way.reverse())
    assert not entered(conversation, Response(id=None, result={}), TO_CLIENT)


def test_notes_of_cancelled_requests_are_kept_for_late_answers_within_a_bound(monkeypatch):
    monkeypatch.setattr(conversations, "MOST_CANCELLED", 2)
    conversation = ProxyConversation(ProxySession("s", ANONYMOUS, 0.0, 0.0))
    for number in range(3):
        entered(conversation, Request(id=number, method="ping"))[NOTE] = number
        conversation.cancel(TO_SERVER, number)
        assert not conversation.open_requests(TO_SERVER)
    answers = [Response(id=number, result={}) for number in range(3)]
    late = [entered(conversation, answer, TO_CLIENT).get(NOTE) for answer in answers]
    assert late == [None, 1, 2]


def test_a_flood_of_requests_forgets_the_oldest(monkeypatch):
    monkeypatch.setattr(conversations, "MOST_OPEN", 2)
    conversation = ProxyConversation(ProxySession("s", ANONYMOUS, 0.0, 0.0))
    for number in range(3):
        entered(conversation, Request(id=number, method="ping"))[NOTE] = number
    assert conversation.open_requests(TO_SERVER) == [1, 2]
    assert not entered(conversation, Response(id=0, result={}), TO_CLIENT)


class Censor:
    """Shortens the answers to one method."""

    name = "censor"
    guards = False

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        message, notes = envelope.message, envelope.context.notes
        if isinstance(message, Request):
            notes[self] = message.method
        elif isinstance(message, Response) and notes.get(self) == "secret":
            return Modify(Response(id=message.id, result={}))
        return CONTINUE


async def test_a_late_answer_to_what_was_cancelled_is_still_known_for_what_it_answers():
    async with Scene([Censor()], eras=False).running() as scene:
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        scene.client.says({"jsonrpc": "2.0", "id": 1, "method": "secret"})
        scene.client.says({"jsonrpc": "2.0", **cancelled})
        await scene.server.hears(2)
        scene.server.says({"jsonrpc": "2.0", "id": 1, "result": {"word": "plover"}})
        [told] = await scene.client.hears()
        assert told["result"] == {}
