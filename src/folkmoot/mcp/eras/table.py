"""What cannot be carried between the eras; the page of eras tells how the rest is."""

from __future__ import annotations

from enum import Enum
from typing import Final

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
        "The server's request does not belong to exactly one open call.",
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
