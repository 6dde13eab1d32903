"""What is carried between the eras and how, and what cannot be; the page of eras shows the same."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.mcp.wire import TASKS_CANCEL, TASKS_GET, TASKS_LIST, TASKS_RESULT, TASKS_UPDATE

UNBRIDGED: Final = frozenset((TASKS_GET, TASKS_LIST, TASKS_RESULT, TASKS_UPDATE, TASKS_CANCEL))
"""Methods that are refused, whichever era the client speaks."""


class ToldSide(Enum):
    """Who gets an error because something cannot be said in the other era."""

    CLIENT = "client"
    SERVER = "server"


class EraRefusal(Enum):
    """What cannot be expressed in the other era: the sentence, and who gets it."""

    TASKS = ("Tasks cannot be carried from one era to the other.", ToldSide.CLIENT)
    VERSIONS = ("The server speaks no version of the stateless era that is known.", ToldSide.CLIENT)
    RESULT_TYPE = (
        "The server answered with a type of result that the client's era does not know.",
        ToldSide.CLIENT,
    )
    INPUT_UNKNOWN = (
        "The server wants an input that the client's era does not know.",
        ToldSide.CLIENT,
    )
    INPUT_NOT_OFFERED = (
        "The server needs an input that this client does not offer.",
        ToldSide.CLIENT,
    )
    INPUT_LATE = ("The client did not answer what it was asked.", ToldSide.CLIENT)
    INPUT_REFUSED = (
        "The client answered the server with an error, which cannot be passed on.",
        ToldSide.CLIENT,
    )
    ROUNDS = ("The server wanted input too often for one request.", ToldSide.CLIENT)
    UNHEARD = ("The server does not announce changes of this resource.", ToldSide.CLIENT)
    NOT_ASKED = ("A client of the stateless era cannot be asked this.", ToldSide.SERVER)
    NOT_OFFERED = ("The client does not offer what the server asks for.", ToldSide.SERVER)
    NOT_TIED = (
        "The question cannot be tied to one call or one person, so nobody is asked.",
        ToldSide.SERVER,
    )
    NOT_ANSWERED = ("The client did not come back with an answer.", ToldSide.SERVER)

    def __init__(self, sentence: str, told: ToldSide) -> None:
        self.sentence = sentence
        self.told = told

    def error(self, detail: str = "", **data: object) -> e.EraNotBridged:
        """The error that says so, with one thing named at the end of the sentence."""
        message = f"{self.sentence[:-1]}: {detail}." if detail else self.sentence
        return e.EraNotBridged(message, **data)


class BridgedSubject(msgspec.Struct, frozen=True, gc=False):
    """One thing of the protocol, and what becomes of it between the eras."""

    name: str
    to_stateless: str
    """For a handshake client in front of a stateless server."""
    to_handshake: str
    """For a stateless client in front of a handshake server."""


SUBJECTS: Final = (
    BridgedSubject(
        "opening",
        "`initialize` is answered from `server/discover`; `notifications/initialized` ends here",
        "`server/discover` is answered from an `initialize` of ours; by the proxy only with "
        "`--eras always`",
    ),
    BridgedSubject(
        "tools, prompts, resources, completion, and methods nobody knows",
        "each request gets its `_meta`: version, client and capabilities",
        "each request loses that `_meta`; each result gets `resultType`, and `ttlMs` 0 and "
        "`cacheScope` private where they are required",
    ),
    BridgedSubject(
        "elicitation, sampling, roots",
        "a wish for input becomes requests to the client in the stream of its call, if the client "
        "offers what is asked for, and their answers within 300 seconds a repeated request",
        "a request of the server becomes a wish for input in answer to an open call, and the "
        "repeated request its answer",
    ),
    BridgedSubject(
        "a client's error in answer to a question",
        "cannot be told the server: the call fails with an error that tells the client's",
        "cannot be told the server: after 300 seconds it is told that no answer came; so it is too "
        "where both ends shake hands and the gateway is between them",
    ),
    BridgedSubject(
        "progress",
        "as it is",
        "as it is; after a repeated request under the token of the newest",
    ),
    BridgedSubject(
        "cancellation",
        "as it is; questions that the client still has are withdrawn",
        "as it is, under the id that the server knows; a `subscriptions/listen` ends here",
    ),
    BridgedSubject(
        "changed lists",
        "one `subscriptions/listen`, opened when the client listens or subscribes, and renewed",
        "go to each `subscriptions/listen` that wants them, and are dropped without one",
    ),
    BridgedSubject(
        "updates of resources",
        "`resources/subscribe` and `resources/unsubscribe` renew the `subscriptions/listen`; a "
        "refusal has the reason that the acknowledgement gives, if it gives one",
        "`resources/subscribe` for what a `subscriptions/listen` names, `resources/unsubscribe` "
        "when the last one of it ends",
    ),
    BridgedSubject(
        "log messages",
        "`logging/setLevel` sets the level in the `_meta` of later requests; before, it is `info`",
        "the level in a request's `_meta` becomes `logging/setLevel`; messages pass while a "
        "request that wants them is open, in its stream",
    ),
    BridgedSubject("`ping`", "answered here", "the server's is answered here"),
    BridgedSubject(
        "`resultType`, `ttlMs`, `cacheScope`, and who the server is in a result's `_meta`",
        "left out",
        "added",
    ),
    BridgedSubject(
        "structured content that is no object",
        "left out, and so is the schema of the tool",
        "does not occur",
    ),
    BridgedSubject(
        "changed roots, and progress that the client tells",
        "dropped: a stateless server asks for roots each time it needs them",
        "do not occur",
    ),
    BridgedSubject(
        "the end of an elicitation by URL",
        "does not occur",
        "`notifications/elicitation/complete` is dropped",
    ),
    BridgedSubject(
        "tasks",
        "refused, and not offered; so is a call with `task`",
        "refused, and not offered; the gateway passes on tasks whose maker and server speak one "
        "era",
    ),
)
