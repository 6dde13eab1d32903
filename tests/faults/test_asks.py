"""What is approved is done at most once and as it was shown, whoever is killed when."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from tests import nats, postgres
from tests.amounts import TIMES, more_than_once, times
from tests.faults.asking import (
    ROUNDS_ON_ONE,
    Book,
    Outcome,
    ReadAsk,
    call_of,
    faults,
    many,
    one_hub,
    rounds,
    say,
    three_nodes,
)

SEED = "83"
ARGUMENTS = {"key": "one", "data": [1.5]}
OTHERS = {"key": "two", "data": None}
EDITED = {"key": "two+0.5", "data": None}
JOURNAL = [
    {"line": "a", "tool": "hasty", "arguments": ARGUMENTS},
    {"line": "b", "tool": "hasty", "arguments": EDITED},
]


def read(id_: str, state: str, arguments: object, **more: object) -> ReadAsk:
    given = {"tool": "journal:hasty", "rule": "hasty", **more}
    return ReadAsk(id=id_, state=state, arguments=arguments, **given)  # type: ignore[arg-type]


def answered(line: str) -> object:
    return {"content": [{"type": "text", "text": f'{{"line": "{line}"}}'}]}


DONE = read("1", "done", ARGUMENTS, result=answered("a"))
ASKS = [
    DONE,
    read("2", "edited", OTHERS, edited_as="3"),
    read("3", "unknown", EDITED),
    read("4", "rejected", {"key": "three"}),
    read("5", "approved", {"key": "four"}, tool="shell", rule=""),
]


def book() -> Book:
    kept = Book(wanted={ask.call for ask in ASKS})
    kept.shown = {ask.id: ask.call for ask in ASKS if ask.id != "3"}
    kept.won = [(id_, "someone") for id_ in ("1", "2", "4", "5")]
    kept.edited = {"2": ("3", call_of("hasty", EDITED))}
    kept.answers = [("a", "one"), ("b", "two")]
    kept.told = [("1", "open", "ann"), ("1", "running", "bob"), ("4", "rejected", "bob")]
    return kept


def test_the_checker_finds_nothing_where_all_is_well():
    assert faults(JOURNAL, ASKS, book()) == []


WITHOUT = [ask for ask in ASKS if ask.id != "1"]
AGAIN = {**JOURNAL[0], "line": "c"}
OTHER = {**JOURNAL[0], "arguments": {"key": "one", "data": [1.25]}}


@pytest.mark.parametrize(
    ("journal", "asks", "sentence"),
    [
        ([*JOURNAL, JOURNAL[0]], ASKS, "twice in the journal"),
        ([*JOURNAL, AGAIN], ASKS, "ran 2 times, and was approved 1 times"),
        ([OTHER, JOURNAL[1]], ASKS, "ran 1 times, and was approved 0 times"),
        ([JOURNAL[1]], ASKS, "None was done for"),
        ([JOURNAL[0], {**JOURNAL[1], "arguments": OTHERS}], ASKS, "approved 0 times"),
        (JOURNAL, WITHOUT, "was told that it is running: 1"),
        *(
            (JOURNAL, [replace(DONE, state=state), *ASKS[1:]], "approved 0 times")
            for state in ("open", "rejected", "withdrawn", "expired")
        ),
        (JOURNAL, [replace(DONE, state="approved"), *ASKS[1:]], "not a state of such an ask"),
        (JOURNAL, [replace(DONE, result=None), *ASKS[1:]], "is done, and has no answer"),
        (JOURNAL, [replace(DONE, result=answered("b")), *ASKS[1:]], "was done for"),
        (JOURNAL, [replace(DONE, state="unknown"), *ASKS[1:]], "has an answer, and is not done"),
        (JOURNAL, [replace(DONE, arguments=OTHERS), *ASKS[1:]], "was shown"),
        (JOURNAL, [DONE, replace(ASKS[1], edited_as="4"), *ASKS[2:]], "took the place of"),
    ],
)
def test_the_checker_complains_of_what_is_wrong(journal, asks, sentence):
    assert any(sentence in each for each in faults(copy.deepcopy(journal), asks, book()))


def test_the_checker_complains_of_two_who_won_and_of_answers_that_are_not_so():
    told = book()
    told.won.append(("4", "someone else"))
    told.told.append(("4", "expired", "ann"))
    told.answers.append(("b", "one"))
    found = faults(JOURNAL, ASKS, told)
    for sentence in ("were all told to have ended", "told that it is expired", "with the line b"):
        assert any(sentence in each for each in found)


@pytest.mark.long
@pytest.mark.timeout(600 * TIMES)
async def test_an_approved_call_is_made_at_most_once_as_shown_whoever_is_killed():
    outcome = await many(SEED, 0, times(30), 3600, one_hub, each=True)
    say(str(outcome.counts))
    # Had nothing ended in one of these ways, it would prove little.
    for state in ("done", "rejected", "expired", "edited", "unknown"):
        assert outcome.states[f"call {state}"]
    assert outcome.counts["withdraw won"]


@pytest.mark.long
@more_than_once
@postgres.needs_own()[-1]
@nats.NEEDED[-1]
@pytest.mark.timeout(600 * TIMES)
async def test_on_three_nodes_an_approved_call_is_made_at_most_once_as_shown(tmp_path):
    outcome = Outcome()
    await rounds(tmp_path, SEED, range(times(ROUNDS_ON_ONE)), outcome, three_nodes, say)
    say(f"{outcome} {outcome.counts}")
    assert outcome.states["call done"]
