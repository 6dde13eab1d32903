"""What a conversation remembers of requests until they are answered."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import Request, Response
from folkmoot.core.session import ANONYMOUS
from folkmoot.core.timing import TimingContext
from folkmoot.proxy.sessions import ProxySession
from folkmoot.relay import conversation as conversations
from folkmoot.relay.conversation import ProxyConversation
from tests.mcp.client.places import result, told
from tests.mcp_harness import rpc
from tests.proxy.rules.support import loaded
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


@pytest.mark.parametrize("cancelled", [True, False])
def test_notes_of_cancelled_and_of_open_requests_are_kept_within_a_bound(cancelled, monkeypatch):
    monkeypatch.setattr(conversations, "MOST_CANCELLED" if cancelled else "MOST_OPEN", 2)
    conversation = ProxyConversation(ProxySession("s", ANONYMOUS, 0.0, 0.0))
    for number in range(3):
        entered(conversation, Request(id=number, method="ping"))[NOTE] = number
        if cancelled:
            conversation.cancel(TO_SERVER, number)
    assert conversation.open_requests(TO_SERVER) == ([] if cancelled else [1, 2])
    answers = [Response(id=number, result={}) for number in range(3)]
    late = [entered(conversation, answer, TO_CLIENT).get(NOTE) for answer in answers]
    assert late == [None, 1, 2]


async def test_a_late_answer_to_what_was_cancelled_is_still_known_for_what_it_answers():
    rule = 'when = { type = "response", method = "secret" }\naction = "block"\n'
    rules = loaded(f'[[rule]]\nname = "censor"\n{rule}')
    async with Scene(rules.interceptors, eras=False).running() as scene:
        scene.client.says(rpc("secret"), told("notifications/cancelled", requestId=1))
        await scene.server.hears(2)
        scene.server.says(result(1, {"word": "plover"}))
        [answer] = await scene.client.hears()
        assert answer["error"]["data"]["rule"] == "censor"
