"""What a hub publishes on its bus of mail, people, tokens and rooms: never their content."""

from __future__ import annotations

from typing import Any

from folkmoot.core.ports import Event
from tests.interaction.room_client import message, proposal
from tests.transports.rest.support import Asker, House, house

ROOM = "/v1/rooms/square"


class Heard:
    """Everything that is published, by what its subject begins with."""

    def __init__(self, here: House) -> None:
        self._events: list[Event] = []
        here.hub.bus.listen(">", self._events.append)

    def take(self, *kinds: str) -> list[tuple[str, Any]]:
        """What was published of these since the last time."""
        found = [
            (kind, each.data)
            for each in self._events
            if (kind := each.subject.split(".")[0]) in kinds
        ]
        assert "hush" not in str(self._events)
        self._events.clear()
        return found


async def done(who: Asker, method: str, path: str, body: Any = None) -> Any:
    answer = await who.ask(method, path, body)
    assert answer.status < 300, answer
    return answer.json() if answer.body else None


async def test_mail_people_and_tokens_are_published_without_content(tmp_path):
    async with house(tmp_path) as here:
        ann, bob = await here.people("ann", "bob")
        heard = Heard(here)
        sent = await done(ann, "POST", "/v1/messages", {"to": "bob", "body": "hush"})
        letter, thread = sent["message_id"], sent["thread_id"]
        assert heard.take("mail", "sent") == [
            (
                "mail",
                {"seq": 1, "id": letter, "thread_id": thread, "muted": False, "urgent": False},
            ),
            ("sent", {"id": letter, "thread_id": thread}),
        ]
        await done(bob, "PUT", f"/v1/threads/{thread}/read", {})
        await done(bob, "PUT", f"/v1/threads/{thread}/star", {})
        await done(bob, "DELETE", f"/v1/messages/{letter}")
        assert heard.take("mail") == [
            ("mail", {"change": change, "thread_id": thread})
            for change in ("read", "state", "removed")
        ]
        await done(ann, "PUT", "/v1/contacts/bob", {"nickname": "hush"})
        await done(ann, "DELETE", "/v1/contacts/bob")
        await done(ann, "PUT", "/v1/blocks/bob", {})
        await done(ann, "DELETE", "/v1/blocks/bob")
        assert heard.take("contacts") == [
            ("contacts", {"handle": "bob", "change": change})
            for change in ("added", "removed", "blocked", "unblocked")
        ]
        made = await done(ann, "POST", "/v1/me/credentials", {"label": "hush"})
        await done(ann, "DELETE", f"/v1/me/credentials/{made['id']}")
        assert heard.take("tokens") == [
            ("tokens", {"id": made["id"], "change": change}) for change in ("created", "ended")
        ]


async def test_what_is_said_in_a_room_is_published_as_news_without_content(tmp_path):
    async with house(tmp_path) as here:
        ann, bob = await here.people("ann", "bob")
        heard = Heard(here)
        await ann.create("square", access="invite")
        await done(ann, "POST", f"{ROOM}/invites", {"handle": "bob"})
        assert [data["state"] for _, data in heard.take("members")] == ["member", "invited"]
        said = await bob.say("square", "hush")
        assert [data["state"] for _, data in heard.take("members", "said") if "state" in data] == [
            "member"
        ]
        made = await bob.post("square", proposal("sweep", {"hush": 1}, to=["gateway"]))
        assert made.status == 201, made
        about = {"correlation_id": [made.json()["id"]]}
        withdrawn = message("mcpx.withdraw.proposal", {"reason": "hush"}, **about)
        assert (await bob.post("square", withdrawn)).status == 201
        assert heard.take("said") == [
            (
                "said",
                {
                    "seq": said["seq"] + 1 + number,
                    "presence": [],
                    "proposals": [{"proposal": made.json()["id"], "change": change}],
                    "rights": False,
                    "talk": change == "made",
                },
            )
            for number, change in enumerate(("made", "decided"))
        ]
        await done(ann, "DELETE", ROOM)
        assert heard.take("room")[-1] == ("room", {"by": "", "gone": True})
