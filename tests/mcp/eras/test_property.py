"""Whatever comes in whatever order: nothing is raised, and everyone gets one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras import EraBridge, Step, ToServer
from tests.mcp.eras.script import (
    ADA,
    BOX,
    CAPABILITIES,
    CLIENT,
    LEVEL,
    OFFERED,
    SUBSCRIPTION,
    TOLD,
    VERSION,
    bridge,
    error,
    message,
    request,
    result,
)

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

METHODS = ("tools/call", "tools/list", "resources/read", "x/y", "tasks/get", "ping")
ASKED = ("elicitation/create", "roots/list", "sampling/createMessage", "ping", "x/ask")
CHOICES = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 99)), max_size=40)


class World:
    """A client and a server that say what they like when they like, and what became of it."""

    def __init__(self, *, handshake_client: bool, handshake_server: bool, one: bool) -> None:
        self.bridge = EraBridge(one_client=one)
        self.handshake_client = handshake_client
        self.handshake_server = handshake_server
        self.count = 0
        self.now = 0.0
        self.initialized = False
        self.at_server: list[Request] = []
        self.at_client: list[Request] = []
        self.states: list[tuple[Request, str, list[str]]] = []
        self.asked: set[MessageId] = set()
        self.last: MessageId = 0
        self.listens: set[MessageId] = set()
        self.cancelled: set[MessageId] = set()
        self.answers: Counter[MessageId] = Counter()
        self.server_asked: set[MessageId] = set()
        self.server_answers: Counter[MessageId] = Counter()
        self.withdrawn: set[MessageId] = set()

    def ask(self, method: str, **params: Any) -> None:
        """The client makes a request; some ids are numbers, some strings of the same digits."""
        self.count += 1
        meta: dict[str, Any] = {"progressToken": self.count}
        if not self.handshake_client:
            level = {LEVEL: "info"} if self.count % 2 else {}
            meta |= {VERSION: "2026-07-28", CLIENT: ADA, CAPABILITIES: OFFERED, **level}
        self.last = self.count // 2 if self.count % 2 else str(self.count // 2)
        request = Request(id=self.last, method=method, params={**params, "_meta": meta})
        self.asked.add(self.last)
        self.carry(self.bridge.from_client(request))

    def open(self) -> None:
        """The client says its first words."""
        if self.handshake_client:
            self.ask("initialize", protocolVersion="2025-11-25", capabilities=OFFERED)
            ready = Notification(method="notifications/initialized")
            self.carry(self.bridge.from_client(ready))
        else:
            self.ask("server/discover")

    def carry(self, steps: list[Step]) -> None:
        """Take to each side what is for it."""
        for step in steps:
            if isinstance(step, ToServer):
                self.reach_server(step.message)
            else:
                self.reach_client(step.message)

    def reach_server(self, message: ProtocolMessage) -> None:
        """A server of its era reacts as that era has it."""
        if isinstance(message, Response):
            assert message.id is not None
            self.server_answers[message.id] += 1
        elif isinstance(message, Request):
            self.at_server.append(message)
        elif message.method == "notifications/initialized":
            self.initialized = True
        elif message.method == "notifications/cancelled":
            gone = message.params["requestId"]
            self.at_server = [r for r in self.at_server if not _same(r.id, gone)]

    def reach_client(self, message: ProtocolMessage) -> None:
        """A client keeps what it must react to."""
        if isinstance(message, Request):
            self.at_client.append(message)
        elif isinstance(message, Response):
            assert message.id is not None
            self.answers[message.id] += 1
            result = message.result
            if isinstance(result, dict) and result.get("resultType") == "input_required":
                assert not self.handshake_client
                keys = list(result["inputRequests"])
                request = Request(id=message.id, method="tools/call")
                self.states.append((request, result["requestState"], keys))
        elif message.method == "notifications/cancelled":
            gone = message.params["requestId"]
            self.at_client = [r for r in self.at_client if not _same(r.id, gone)]

    def answer(self, place: int, kind: int) -> None:
        """The server answers one of the requests that it has."""
        if not self.at_server:
            return
        request = self.at_server.pop(place % len(self.at_server))
        if request.method == "subscriptions/listen" and not self.handshake_server and kind:
            self.acknowledge(request, ends=kind == 1)
        else:
            self.carry(self.bridge.from_server(self.response(request, kind)))

    def acknowledge(self, request: Request, *, ends: bool) -> None:
        """A stateless server agrees to tell what a listen asks for, for a while or for longer."""
        stream = {SUBSCRIPTION: request.id}
        agreed = {"notifications": request.params["notifications"], "_meta": stream}
        told = Notification(method="notifications/subscriptions/acknowledged", params=agreed)
        self.carry(self.bridge.from_server(told))
        changed = {"uri": "u:1", "_meta": stream}
        update = Notification(method="notifications/resources/updated", params=changed)
        self.carry(self.bridge.from_server(update))
        if ends:
            self.carry(self.bridge.from_server(_reply(request, {"resultType": "complete"})))

    def listen(self, place: int) -> None:
        """A stateless client listens, which is answered only when it ends."""
        if not self.handshake_client:
            filters = {"resourceSubscriptions": [f"u:{place % 3}"]}
            self.ask("subscriptions/listen", notifications=filters)
            self.listens.add(self.last)

    def response(self, request: Request, kind: int) -> Response:
        """What a server answers to a request, within its era."""
        params = request.params if isinstance(request.params, dict) else {}
        stateless = VERSION in (params.get("_meta") or {})
        if request.method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": TOLD, "serverInfo": BOX}
            return _reply(request, told if self.handshake_server else None)
        if stateless is self.handshake_server:
            return _reply(request, None)
        if request.method == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": TOLD}
            return _reply(request, found | {"resultType": "complete"})
        if kind == 0:
            return _reply(request, None)
        done: dict[str, Any] = {} if self.handshake_server else {"resultType": "complete"}
        if kind < 4 and not self.handshake_server and request.method in METHODS[:3:2]:
            questions = {str(n): {"method": ASKED[n % 3]} for n in range(kind - 1)}
            done = {"resultType": "input_required", "inputRequests": questions, "requestState": "s"}
        return _reply(request, done)

    def react(self, place: int, kind: int) -> None:
        """The client answers a question, or comes back with the answers to several."""
        if self.at_client:
            question = self.at_client.pop(place % len(self.at_client))
            self.carry(self.bridge.from_client(_reply(question, {"a": 1} if kind else None)))
        elif self.states:
            request, state, keys = self.states.pop(place % len(self.states))
            given = {key: {"a": 1} for key in keys[kind % 3 // 2 :]}
            self.ask(request.method, requestState=state, inputResponses=given)

    def cancel(self, place: int) -> None:
        """The client wants something no more."""
        waiting = sorted(self.asked - set(self.answers), key=str)
        if waiting:
            gone = waiting[place % len(waiting)]
            self.cancelled.add(gone)
            notice = Notification(method="notifications/cancelled", params={"requestId": gone})
            self.carry(self.bridge.from_client(notice))

    def question(self, place: int) -> None:
        """A handshake server asks the client something, or tells it."""
        if self.handshake_server and self.initialized:
            asked = Request(id=f"q{len(self.server_asked)}", method=ASKED[place % len(ASKED)])
            self.server_asked.add(asked.id)
            self.carry(self.bridge.from_server(asked))

    def tell(self, place: int) -> None:
        """The server tells something."""
        methods = ("tools/list_changed", "message", "progress", "cancelled", "x")
        method = f"notifications/{methods[place % len(methods)]}"
        params = {"progressToken": place, "level": "error", "requestId": f"q{place}"}
        if method == "notifications/cancelled":
            self.withdrawn.add(f"q{place}")
        self.carry(self.bridge.from_server(Notification(method=method, params=params)))

    def expire(self, seconds: int) -> None:
        """Time passes."""
        self.now += seconds
        self.carry(self.bridge.expire(self.now))

    def finish(self, *, comes_back: bool) -> None:
        """Everybody answers everything there is, until nothing is open."""
        for _ in range(200):
            if not comes_back:
                self.states.clear()
            if not (self.at_server or self.at_client or self.states):
                break
            self.answer(0, 9)
            self.react(0, 1)
        self.expire(0)
        self.expire(300)


def _reply(request: Request, value: dict[str, Any] | None) -> Response:
    told = error(request.id, -32601) if value is None else result(request.id, **value)
    answer = message(told)
    assert isinstance(answer, Response)
    return answer


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


@given(CHOICES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_every_request_gets_exactly_one_answer_in_every_order(
    choices, handshake_client, handshake_server, one, settled
):
    world = World(handshake_client=handshake_client, handshake_server=handshake_server, one=one)
    world.open()
    while settled and world.at_server:
        world.answer(0, 9)
    actions: list[Callable[[int], None]] = [
        lambda n: world.ask(METHODS[n % len(METHODS)], name="a"),
        lambda n: world.ask("resources/subscribe" if handshake_client else "x", uri=f"u:{n % 3}"),
        world.listen,
        lambda n: world.ask("tools/call", name="a"),
        lambda n: world.answer(n, n % 7),
        lambda n: world.answer(n, 2 + n % 3),
        lambda n: world.react(n, n % 4),
        world.cancel,
        world.question,
        world.tell,
        lambda n: world.expire(n * 10),
    ]
    for action, place in choices:
        actions[action](place)
    world.finish(comes_back=len(choices) % 2 == 0)
    assert all(count == 1 for count in world.answers.values())
    assert world.asked - world.cancelled - world.listens <= set(world.answers)
    assert all(count == 1 for count in world.server_answers.values())
    assert world.server_asked - world.withdrawn <= set(world.server_answers)


WORDS = st.sampled_from(
    [
        *METHODS,
        *ASKED,
        *wire.CHANGES,
        *(wire.INITIALIZE, wire.DISCOVER, wire.LISTEN, wire.SUBSCRIBE, wire.UNSUBSCRIBE),
        *(wire.SET_LEVEL, wire.INITIALIZED, wire.CANCELLED, wire.PROGRESS, wire.LOGGED),
        *(wire.UPDATED, wire.ACKNOWLEDGED),
    ]
)
IDS = st.sampled_from([0, 1, "1", 2, "folkmoot-t-1", "folkmoot-t-2", "folkmoot-t-3"])
KEYS = st.sampled_from(
    [
        *("_meta", VERSION, CAPABILITIES, SUBSCRIPTION, "requestId", "requestState", "a"),
        *("inputRequests", "inputResponses", "resultType", "notifications", "uri", "method"),
        *("resourceSubscriptions", "supportedVersions", "capabilities", "elicitation"),
    ]
)
TYPES = st.sampled_from(["2026-07-28", "input_required", "roots/list"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | IDS | st.sampled_from(["s1", "note://a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner | TYPES, max_size=4),
    max_leaves=12,
)
OBJECTS = VALUES.map(lambda value: value if isinstance(value, dict) else {"a": value})
MESSAGES = st.one_of(
    st.builds(lambda i, m, p: Request(id=i, method=m, params=p), IDS, WORDS, OBJECTS),
    st.builds(lambda m, p: Notification(method=m, params=p), WORDS, OBJECTS),
    st.builds(lambda i, r: Response(id=i, result=r), IDS, VALUES),
    st.builds(
        lambda i, c, d: message(error(i, c, data=d)),
        IDS,
        st.sampled_from([-32601, -32022, -32602, 0]),
        VALUES,
    ),
)
STARTS: tuple[tuple[dict[str, Any], ...], ...] = (
    (),
    (
        request(0, "initialize", capabilities=OFFERED),
        error(0, -32601),
        result("folkmoot-t-1", supportedVersions=["2026-07-28"], capabilities=TOLD),
    ),
    (
        request(0, "server/discover", _meta={VERSION: "2026-07-28", CAPABILITIES: OFFERED}),
        error(0, -32601),
        result("folkmoot-t-1", capabilities=TOLD),
    ),
)


@given(
    st.sampled_from(STARTS),
    st.lists(st.tuples(st.booleans(), MESSAGES), max_size=12),
    st.booleans(),
)
def test_no_message_from_either_side_makes_the_bridge_raise(start, messages, one):
    machine = bridge(one_client=one)
    for place, value in enumerate(start):
        (machine.from_server if place else machine.from_client)(message(value))
    for now, (from_client, each) in enumerate(messages):
        (machine.from_client if from_client else machine.from_server)(each)
        machine.listen()
        machine.renew()
        machine.expire(now * 100.0)
