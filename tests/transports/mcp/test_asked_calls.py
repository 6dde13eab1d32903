"""Calls before which a rule of the hub asks a person: what is shown is what is done, once."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from folkmoot.asks import service
from folkmoot.asks.receipts import check
from folkmoot.asks.rules import AskRules
from folkmoot.core import errors as e
from folkmoot.settings import GatewaySpec
from folkmoot.settings.backends import AskRule, BackendSpec
from tests.clocks import Later, Wrong
from tests.faults.backends import operator, trouble
from tests.mcp_harness import Meeting, Person, both_eras, until
from tests.nodes import nodes_of
from tests.transports.mcp.gateway_support import Demo, fronted, text
from tests.transports.rest.support import Asker, done, refused
from tests.transports.rest.test_sessions import Browser

ECHO = "mcp.request.tools/call:demo:echo"
ASKS = "/v1/asks"
EVERYONES = {"demo": BackendSpec(name="demo", namespace="demo", command=("x",), everyone=True)}


def rule(name: str = "careful", what: Any = ECHO, **more: Any) -> AskRule:
    return AskRule(name=name, what=(what,), **{"to": "bob", "wait_seconds": 0, **more})


def ruled(there: Meeting, *rules: AskRule) -> None:
    for node in nodes_of(there.hub):
        node.behind.ask_rules = AskRules(node.clock, rules)


class Table:
    """A hub with one server, Ada whose calls are asked about, and Bob who decides."""

    def __init__(self, there: Meeting, demo: Demo, ada: Person, bob: Person) -> None:
        self.there, self.demo, self.ada = there, demo, ada
        self.bob = Asker(there.port, bob.token, "bob")
        self.rest = Asker(there.port, ada.token, "ada")

    async def asked(self, tool: str = "demo_echo", **arguments: Any) -> str:
        """Ada calls, and is told that Bob was asked; the id of the ask."""
        told = await self.ada.call(tool, **arguments)
        assert (told["status"], "@bob" in told["message"]) == ("asked", True)
        assert not self.demo.asked
        return str(told["ask_id"])

    async def asked_again(self, *, count: int, **arguments: Any) -> str:
        """The same where the server was called as often before."""
        told = await self.ada.call("demo_echo", **arguments)
        assert (told["status"], len(self.demo.asked)) == ("asked", count)
        return str(told["ask_id"])

    async def decide(self, id_: str, way: str = "approve", **body: Any) -> Any:
        return await self.bob.ask("POST", f"{ASKS}/{id_}/{way}", body)

    async def outcome(self, id_: str) -> Any:
        return await self.ada.call("ask_result", ask=id_, wait=20)

    def calls(self) -> list[Any]:
        """What reached the server."""
        return [each.params for each in self.demo.asked]


async def plain(wanted: Any) -> Any:
    return text(json.dumps(wanted.params["arguments"]))


@asynccontextmanager
async def table(folder: Any, era: str, *rules: AskRule, clock: Any = None, **tools: Any) -> Any:
    demo = Demo(**{"echo": plain, **tools})
    async with fronted(folder, era, demo, clock=clock) as there:
        ada, bob = await there.people("ada", "bob")
        ruled(there, *rules)
        yield Table(there, demo, ada, bob)


@both_eras
async def test_a_call_is_asked_about_and_made_once_as_shown_when_approved(tmp_path, era):
    async with table(tmp_path, era, rule(reason="Two pairs of eyes.")) as at:
        id_ = await at.asked(text="hello")
        (shown,) = (await at.bob.get(f"{ASKS}?kind=call"))["asks"]
        call = shown["call"]
        assert (call["tool"], call["arguments"], call["rule"]) == (
            "demo:echo", {"text": "hello"}, "careful",
        )  # fmt: skip
        approved = done(await at.decide(id_), 200)
        assert approved["state"] in {"running", "done"}
        assert approved["result"] is None
        found = await at.outcome(id_)
        assert found["state"] == "done"
        assert json.loads(found["result"]["content"][0]["text"]) == {"text": "hello"}
        assert at.calls() == [{"name": "echo", "arguments": {"text": "hello"}}]
        again = refused(await at.decide(id_), 409, "ask_closed")
        assert again["state"] == "done"
        assert len(at.calls()) == 1


@both_eras
async def test_of_two_assistants_one_asks_and_the_other_decides(tmp_path, era):
    async with table(tmp_path, era, rule()) as at:
        theirs = await at.there.returning(at.bob.token)
        first, second = await at.asked(text="one"), await at.asked(text="two")
        seen = (await theirs.call("ask_list", kind="call"))["asks"]
        assert [each["call"]["arguments"] for each in seen] == [{"text": "one"}, {"text": "two"}]
        told = await theirs.call("ask_decide", ask=first, verdict="approve", reason="Go on.")
        assert told["state"] in {"running", "done"}
        await theirs.call("ask_decide", ask=second, verdict="reject", reason="Once is enough.")
        assert (await at.outcome(first))["state"] == "done"
        rejected = await at.outcome(second)
        assert (rejected["state"], rejected["reason"]) == ("rejected", "Once is enough.")
        assert at.calls() == [{"name": "echo", "arguments": {"text": "one"}}]
        told, is_error = await at.ada.result("ask_decide", {"ask": first, "verdict": "approve"})
        assert (told["error"], is_error) == (e.AskNotYours().message, True)


@both_eras
async def test_where_a_person_is_needed_an_assistant_is_given_the_link_for_them(tmp_path, era):
    async with table(tmp_path, era, rule(person=True)) as at:
        theirs = await at.there.returning(at.bob.token)
        id_ = await at.asked(text="one")
        told, is_error = await theirs.result("ask_decide", {"ask": id_, "verdict": "approve"})
        assert is_error
        assert f"{at.there.hub.base_url}/decisions" in told["error"]
        listed = await theirs.client.list_tools()
        (tool,) = (each for each in listed.tools if each.name == "ask_decide")
        assert list(tool.input_schema["properties"]) == ["ask", "verdict", "reason"]
        assert at.calls() == []


@both_eras
async def test_within_its_patience_the_call_just_answers(tmp_path, era):
    async with table(tmp_path, era, rule(wait_seconds=30)) as at:
        calling = asyncio.ensure_future(at.ada.result("demo_echo", {"text": "hello"}))
        (id_,) = await open_asks(at)
        done(await at.decide(id_), 200)
        assert await calling == ({"text": "hello"}, False)


async def test_a_call_whose_patience_is_over_says_that_it_was_asked(tmp_path):
    async with table(tmp_path, "stateless", rule(wait_seconds=0.2)) as at:
        await at.asked()


@pytest.mark.timeout(60)
async def test_a_call_waits_no_longer_where_the_clock_is_set_back(tmp_path):
    clock = Wrong()
    async with table(tmp_path, "stateless", rule(wait_seconds=0.5), clock=clock) as at:
        calling = asyncio.ensure_future(at.ada.call("demo_echo", text="one"))
        await open_asks(at)
        clock.ahead = -3600.0
        assert (await calling)["status"] == "asked"


async def test_what_was_told_to_have_expired_stays_so_where_the_clock_is_set_back(tmp_path):
    clock = Wrong()
    async with table(tmp_path, "stateless", rule(), clock=clock) as at:
        seen, decided = await at.asked(text="one"), await at.asked(text="two")
        clock.ahead = 3601
        assert (await at.ada.call("ask_result", ask=seen))["state"] == "expired"
        refused(await at.decide(decided), 409, "ask_closed")
        clock.ahead = 0
        for id_ in (seen, decided):
            for way in ("approve", "reject"):
                assert refused(await at.decide(id_, way), 409, "ask_closed")["state"] == "expired"
            refused(await edit(at, id_, {"text": "some"}), 409, "ask_closed")
            assert (await at.ada.call("ask_result", ask=id_))["state"] == "expired"
        assert at.calls() == []


async def test_what_was_told_to_be_unknown_stays_so_where_the_clock_is_set_back(tmp_path):
    clock, answering = Wrong(), asyncio.Event()

    async def slow(_: Any) -> Any:
        await answering.wait()
        return text("{}")

    async with table(tmp_path, "stateless", rule(), clock=clock, echo=slow) as at:
        id_ = await at.asked(text="one")
        done(await at.decide(id_), 200)
        await until(at.calls)
        clock.ahead = 3600
        assert (await at.ada.call("ask_result", ask=id_))["state"] == "unknown"
        clock.ahead = 0
        answering.set()
        found = await at.outcome(id_)
        assert (found["state"], found["result"]) == ("unknown", None)


async def open_asks(at: Table, count: int = 1) -> list[str]:
    found: list[str] = []

    async def look() -> bool:
        listed = (await at.bob.get(f"{ASKS}?kind=call"))["asks"]
        found[:] = [each["call"]["id"] for each in listed]
        return len(found) == count

    await until(look)
    return found


async def test_progress_says_who_was_asked(tmp_path):
    told: list[str] = []

    async def hear(_: float, __: float | None, message: str | None) -> None:
        told.append(str(message))

    async with table(tmp_path, "handshake", rule(wait_seconds=30)) as at:
        calling = asyncio.ensure_future(
            at.ada.client.call_tool("demo_echo", {}, progress_callback=hear)
        )
        (id_,) = await open_asks(at)
        done(await at.decide(id_), 200)
        await calling
    assert told == ["@bob was asked whether demo:echo can be called."]


async def test_a_model_reads_why_its_call_was_rejected_and_nothing_was_called(tmp_path):
    async with table(tmp_path, "stateless", rule(wait_seconds=30)) as at:
        calling = asyncio.ensure_future(at.ada.refused("demo_echo", text="x"))
        (id_,) = await open_asks(at)
        done(await at.decide(id_, "reject", reason="Not on Fridays."), 200)
        assert await calling == "@bob rejected this call: Not on Fridays."
        assert at.calls() == []


async def test_a_call_that_its_client_gives_up_is_asked_about_no_more(tmp_path):
    async with table(tmp_path, "stateless", rule(wait_seconds=30)) as at:
        calling = asyncio.ensure_future(at.ada.client.call_tool("demo_echo", {}))
        (id_,) = await open_asks(at)
        calling.cancel()
        await open_asks(at, 0)
        assert refused(await at.decide(id_), 409, "ask_closed")["state"] == "withdrawn"


async def test_equal_calls_wait_for_one_ask_and_are_made_once(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        first, second = await at.asked(text="x"), await at.asked(text="x")
        assert (first == second, await at.asked(text="y") == first) == (True, False)
        done(await at.decide(first), 200)
        assert (await at.outcome(first))["state"] == "done"
        assert len(at.calls()) == 1


async def test_what_nobody_decides_in_time_expires(tmp_path):
    clock = Later()
    async with table(tmp_path, "stateless", rule(expires_seconds=60), clock=clock) as at:
        id_ = await at.asked()
        clock.ahead += 61
        assert (await at.outcome(id_))["state"] == "expired"
        assert refused(await at.decide(id_), 409, "ask_closed")["state"] == "expired"


async def test_wrong_arguments_are_refused_and_nobody_is_asked(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        assert "do not match" in await at.ada.refused("demo_echo", text=7)
        assert await open_asks(at, 0) == []


async def test_arguments_nobody_could_look_through_are_refused(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        assert "64 KiB" in await at.ada.refused("demo_echo", text="x" * 70_000)


def with_text(text: str) -> Any:
    return {"kind": ECHO, "payload": {"params": {"arguments": {"text": text}}}}


async def test_the_first_rule_that_fits_counts(tmp_path):
    rules = (
        rule("quiet", with_text("quiet"), verdict="allow"),
        rule("never", with_text("never"), verdict="deny"),
        rule("rest"),
    )
    async with table(tmp_path, "stateless", *rules) as at:
        assert await at.ada.call("demo_echo", text="quiet") == {"text": "quiet"}
        at.demo.asked.clear()
        told = await at.ada.refused("demo_echo", text="never")
        assert told == "demo:echo is denied by a rule of the hub."
        await at.asked(text="loud")


async def test_rules_are_for_some_accounts_and_some_kinds_of_callers(tmp_path):
    rules = (rule(who=("ada",)), rule("bots", callers="agents"))
    async with table(tmp_path, "stateless", *rules) as at:
        await at.asked()
        carol = await at.there.person("carol")
        assert await carol.call("demo_echo", text="x") == {"text": "x"}
        at.demo.asked.clear()
        robot = await at.there.person("robot", account_type="agent")
        assert (await robot.call("demo_echo"))["status"] == "asked"


async def test_who_renames_their_account_does_not_get_around_a_rule(tmp_path):
    named = rule(who=("ada",))
    async with table(tmp_path, "stateless", named) as at:
        for node in nodes_of(at.there.hub):
            spec = node.behind._spec
            wanted = msgspec.structs.replace(spec, backends=EVERYONES, asks=(named,))
            await node.behind.rights.configure(wanted)
        await at.ada.call("msg_change_handle", new_handle="eve")
        await at.asked()


async def test_only_calls_beyond_an_amount_are_asked_about(tmp_path):
    async with table(tmp_path, "stateless", rule(more_than=2, seconds=3600)) as at:
        for _ in range(2):
            await at.ada.call("demo_echo", text="x")
        at.demo.asked.clear()
        await at.asked(text="x")


async def test_a_changed_tool_is_not_what_was_approved(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked()
        for node in nodes_of(at.there.hub):
            listed = at.demo.inventory()
            other = tuple({**tool, "description": "Deletes everything."} for tool in listed.tools)
            await node.behind.gateway.arrived("demo", msgspec.structs.replace(listed, tools=other))
        refused(await at.decide(id_), 409, "ask_outdated")
        assert at.calls() == []


async def test_after_the_rules_change_it_has_to_be_asked_again(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked()
        ruled(at.there, rule(reason="Another one."))
        told = refused(await at.decide(id_), 409, "ask_outdated")
        assert told["message"] == "The hub's rules have changed since. It has to be asked again."
        assert at.calls() == []


async def test_a_right_that_was_taken_away_meanwhile_is_asked_for_again(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked()
        for node in nodes_of(at.there.hub):
            denied = {"ada": ("!mcp.request.tools/call:demo:*",)}
            spec = node.behind._spec
            wanted = msgspec.structs.replace(spec, backends=EVERYONES, grants=denied)
            await node.behind.rights.configure(wanted)
        refused(await at.decide(id_), 409, "ask_outdated")
        assert at.calls() == []


async def test_a_token_that_was_revoked_has_nothing_done(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        made = await at.rest.did("POST", "/v1/me/credentials", {"label": "laptop"})
        laptop = await at.there.returning(made["token"])
        told = await laptop.call("demo_echo")
        await at.rest.did("DELETE", f"/v1/me/credentials/{made['id']}")
        refused(await at.decide(told["ask_id"]), 409, "ask_outdated")
        assert at.calls() == []


async def test_what_ones_own_assistant_asks_no_program_of_ones_own_approves(tmp_path):
    async with table(tmp_path, "stateless", rule(to="")) as at:
        told = await at.ada.call("demo_echo")
        path = f"{ASKS}/{told['ask_id']}/approve"
        refused(await at.rest.ask("POST", path, {}), 403, "person_needed")
        refused(await at.bob.ask("POST", path, {}), 404, "ask_unknown")
        assert at.calls() == []


async def test_where_a_rule_wants_a_person_no_program_of_the_decider_decides(tmp_path):
    async with table(tmp_path, "stateless", rule(person=True)) as at:
        id_ = await at.asked()
        refused(await at.decide(id_), 403, "person_needed")
        page = await Browser(at.there.port).sign_in(at.bob.token)
        done(
            await page.ask("POST", f"{ASKS}/{id_}/approve", {}, folkmoot_confirm=at.bob.token), 200
        )
        assert (await at.outcome(id_))["state"] == "done"


async def test_the_answer_of_a_tool_is_for_who_asked_alone(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="secret")
        done(await at.decide(id_), 200)
        assert (await at.outcome(id_))["result"] is not None
        assert (await at.bob.get(f"{ASKS}/{id_}"))["result"] is None


async def test_an_answer_that_did_not_come_in_time_is_never_asked_for_again(tmp_path):
    clock, begun, hold = Later(), asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Any:
        begun.set()
        await hold.wait()
        return text("late")

    slowly = rule(what="mcp.request.tools/call:demo:slow")
    async with table(tmp_path, "stateless", slowly, clock=clock, slow=slow) as at:
        told = await at.ada.call("demo_slow")
        done(await at.decide(told["ask_id"]), 200)
        await begun.wait()
        clock.ahead += 600
        assert (await at.outcome(told["ask_id"]))["state"] == "unknown"
        hold.set()
        refused(await at.decide(told["ask_id"]), 409, "ask_closed")
        assert (await at.outcome(told["ask_id"]))["state"] == "unknown"
        assert len(at.calls()) == 1


async def test_a_server_that_fails_is_told_of_as_always(tmp_path):
    async def broken(_: Any) -> Any:
        return {"nothing": "valid"}

    fails = rule(what="mcp.request.tools/call:demo:broken")
    async with table(tmp_path, "stateless", fails, broken=broken) as at:
        told = await at.ada.call("demo_broken")
        done(await at.decide(told["ask_id"]), 200)
        found = await at.outcome(told["ask_id"])
        assert (found["state"], found["result"]["isError"]) == ("done", True)
        assert "It may have done what was asked" in found["result"]["content"][0]["text"]


async def test_a_tool_with_a_promised_structure_is_answered_as_clients_take_it(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        for node in nodes_of(at.there.hub):
            listed = at.demo.inventory()
            schema = {"type": "object", "properties": {"echoed": {"type": "boolean"}}}
            tools = tuple({**tool, "outputSchema": schema} for tool in listed.tools)
            await node.behind.gateway.arrived("demo", msgspec.structs.replace(listed, tools=tools))
            await node.behind.gateway.accept("demo")
        told, is_error = await at.ada.result("demo_echo", {})
        assert (told["status"], is_error) == ("asked", True)


async def test_in_a_room_such_a_call_is_refused(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        await at.ada.call("room_create", name="lab", backends=["demo"])
        told = await at.ada.call(
            "room_call", room="lab", to="demo", tool="demo:echo", arguments={}, wait=20
        )
        assert "in a room it can't wait for that" in told["result"]["content"][0]["text"]
        assert at.calls() == []


async def test_who_is_to_be_asked_has_to_be_there(tmp_path):
    async with table(tmp_path, "stateless", rule(to="nobody")) as at:
        assert await at.ada.refused("demo_echo") == "There is no account @nobody to ask."


async def test_ten_thousand_asks_of_one_account_are_a_hundred(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        for number in range(100):
            await at.asked(text=str(number))
        assert "100 open asks already" in await at.ada.refused("demo_echo", text="one more")


async def test_at_the_start_the_log_says_whom_a_rule_asks_who_is_not_there(tmp_path, caplog):
    async with table(tmp_path, "stateless") as at:
        behind = at.there.hub.behind
        rules = (rule(), rule("other", to="nobody"))
        await behind.apply(GatewaySpec(backends=EVERYONES, asks=rules))
        (warned,) = [each for each in caplog.messages if "who has no account" in each]
        assert warned.startswith("the rule asks.other asks @nobody, ")
        await at.there.hub.store.write(
            lambda tx: tx.execute("UPDATE handles SET handle = 'ask' WHERE handle = 'ada'")
        )
        await behind.apply(GatewaySpec(backends=EVERYONES))
        assert "@ask is an account, and the name is the hub's" in caplog.text


async def approve_longer(at: Table, id_: str, **body: Any) -> Any:
    """What Bob is answered who is at a browser."""
    page = await Browser(at.there.port).sign_in(at.bob.token)
    path = f"{ASKS}/{id_}/approve-longer"
    return await page.ask("POST", path, body, folkmoot_confirm=at.bob.token)


async def approved(at: Table, id_: str, **body: Any) -> Any:
    if not body:
        return done(await at.decide(id_), 200)
    return done(await approve_longer(at, id_, **body), 200)


async def test_what_was_approved_for_longer_is_made_at_once_while_it_is_like_it(tmp_path):
    clock = Later()
    async with table(tmp_path, "stateless", rule(), clock=clock) as at:
        id_ = await at.asked(text="one", to="x")
        found = await approved(at, id_, seconds=3600, same=["text"])
        assert (found["same"], found["lasts_until"] is not None) == (["text"], True)
        await at.outcome(id_)
        assert await at.ada.call("demo_echo", text="one", to="y") == {"text": "one", "to": "y"}
        assert await at.ada.call("demo_echo", text="one") == {"text": "one"}
        for other in ({"text": "two", "to": "x"}, {"to": "x"}):
            assert (await at.ada.call("demo_echo", **other))["status"] == "asked"
        assert len(at.calls()) == 3
        clock.ahead = 3601
        assert (await at.ada.call("demo_echo", text="one"))["status"] == "asked"
        assert (await at.bob.get("/v1/lasting-asks"))["asks"] == []


async def test_what_lasts_is_for_that_account_tool_rule_and_definition_alone(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="one")
        await approved(at, id_, seconds=3600)
        await at.outcome(id_)
        theirs = await at.there.person("cyd")
        assert (await theirs.call("demo_echo", text="one"))["status"] == "asked"
        assert await at.ada.call("demo_echo", text="one") == {"text": "one"}
        ruled(at.there, rule(reason="Another reason."))
        assert (await at.ada.call("demo_echo", text="one"))["status"] == "asked"
        ruled(at.there, rule(to="cyd"))
        assert (await at.ada.call("demo_echo", text="one"))["status"] == "asked"
        ruled(at.there, rule())
        assert await at.ada.call("demo_echo", text="one") == {"text": "one"}
        await operator(at.there.hub, "folkmoot/suspend", handle="bob")
        assert (await at.ada.call("demo_echo", text="one"))["status"] == "asked"


async def test_what_lasts_is_listed_and_ended_by_who_approved_it(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="one")
        await approved(at, id_, seconds=3600, same=[])
        (listed,) = (await at.bob.get("/v1/lasting-asks"))["asks"]
        assert (listed["id"], listed["same"], listed["by"]) == (id_, [], "ada")
        await at.outcome(id_)
        assert await at.ada.call("demo_echo", text="two") == {"text": "two"}
        refused(await at.rest.ask("DELETE", f"{ASKS}/{id_}/lasting"), 403, "ask_not_yours")
        done(await at.bob.ask("DELETE", f"{ASKS}/{id_}/lasting"), 200)
        refused(await at.bob.ask("DELETE", f"{ASKS}/{id_}/lasting"), 409, "ask_closed")
        assert (await at.ada.call("demo_echo", text="two"))["status"] == "asked"


async def test_only_an_approval_of_what_a_rule_asks_can_last(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="one")
        for body, field in (
            ({}, "seconds"),
            ({"seconds": 59}, "seconds"),
            ({"seconds": 31 * 86_400}, "seconds"),
            ({"seconds": 60, "same": ["nothing"]}, "same"),
        ):
            wrong = refused(await approve_longer(at, id_, **body), 400, "argument_invalid")
            assert wrong["field"] == field
        made = await at.rest.did("POST", ASKS, {"tool": "shell", "arguments": {}, "to": "bob"})
        wrong = await approve_longer(at, made["ask_id"], seconds=60)
        assert refused(wrong, 400, "argument_invalid")["field"] == "ask"
        # A token alone, as assistants and scripts have, approves one call.
        path = f"{ASKS}/{id_}/approve-longer"
        refused(await at.bob.ask("POST", path, {"seconds": 60}), 403, "person_needed")
        assert (await at.bob.get("/v1/lasting-asks"))["asks"] == []


async def test_nobody_has_more_approvals_that_last_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "MAX_LASTING", 1)
    async with table(tmp_path, "stateless", rule()) as at:
        first, second = await at.asked(text="one"), await at.asked(text="two")
        await approved(at, first, seconds=60)
        refused(await approve_longer(at, second, seconds=60), 429, "too_many_asks")
        await approved(at, second)


async def test_who_decides_is_told_how_often_the_same_call_was_approved(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        for count in range(3):
            id_ = await at.asked_again(text="one", count=count)
            (shown,) = (await at.bob.get(f"{ASKS}?kind=call"))["asks"]
            assert shown["call"]["approved_before"] == count
            await approved(at, id_)
            await at.outcome(id_)


async def test_a_policy_test_tells_the_rule_and_what_was_approved_for_longer(tmp_path):
    async with trouble(tmp_path) as at:
        hub = at.hub
        bob = (await hub.accounts.register("bob")).token
        port = int(hub.base_url.rpartition(":")[2])
        what = "mcp.request.tools/call:flawed:echo"
        hub.behind.ask_rules = AskRules(hub.clock, [rule(what=what)])
        asked = {"handle": "ada", "tool": "flawed:echo", "arguments": {"text": "one"}}
        judged = await operator(hub, "folkmoot/judge_call", **asked)
        assert (judged["verdict"], judged["rule"], judged["to"]) == ("ask", "careful", "bob")
        told = await at.call("echo", text="one")
        id_ = json.loads(told["content"][0]["text"])["ask_id"]
        page = await Browser(port).sign_in(bob)
        path, body = f"{ASKS}/{id_}/approve-longer", {"seconds": 60}
        done(await page.ask("POST", path, body, folkmoot_confirm=bob), 200)
        judged = await operator(hub, "folkmoot/judge_call", **asked)
        assert (judged["verdict"], judged["to"]) == ("allow", "bob")
        asked["arguments"] = {"text": "two"}
        assert (await operator(hub, "folkmoot/judge_call", **asked))["verdict"] == "ask"


async def edit(at: Table, id_: str, arguments: Any, **body: Any) -> Any:
    """What Bob is answered who is at a browser."""
    page = await Browser(at.there.port).sign_in(at.bob.token)
    given = {"arguments": arguments, **body}
    return await page.ask("POST", f"{ASKS}/{id_}/edit", given, folkmoot_confirm=at.bob.token)


async def test_other_arguments_are_another_ask_that_is_made_once_and_that_who_asked_reads(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="all", to="x")
        new = done(await edit(at, id_, {"text": "some"}, reason="Not all."), 200)
        assert (new["id"] != id_, new["arguments"]) == (True, {"text": "some"})
        old = await at.outcome(id_)
        assert (old["state"], old["edited_as"], old["receipt"]) == ("edited", new["id"], None)
        assert (old["arguments"], old["reason"]) == ({"text": "all", "to": "x"}, "Not all.")
        found = await at.outcome(new["id"])
        assert (found["state"], found["by"], found["digest"] != old["digest"]) == (
            "done",
            "ada",
            True,
        )
        assert json.loads(found["result"]["content"][0]["text"]) == {"text": "some"}
        keys = await at.rest.get("/.well-known/jwks.json")
        now = time.time()
        assert check(found["receipt"], keys, "demo:echo", {"text": "some"}, now)["ask"] == new["id"]
        with pytest.raises(e.ReceiptInvalid):
            check(found["receipt"], keys, "demo:echo", {"text": "all", "to": "x"}, now)
        for way in ("approve", "reject"):
            assert refused(await at.decide(id_, way), 409, "ask_closed")["state"] == "edited"
        refused(await edit(at, id_, {"text": "more"}), 409, "ask_closed")
        refused(await edit(at, new["id"], {"text": "more"}), 409, "ask_closed")
        assert at.calls() == [{"name": "echo", "arguments": {"text": "some"}}]
        (noted,) = (await at.bob.get("/v1/decisions"))["decisions"]
        assert (noted["decision"], noted["id"], noted["reason"]) == (
            "edited",
            new["id"],
            "Not all.",
        )


async def test_a_call_that_waits_is_answered_with_what_was_done_instead(tmp_path):
    async with table(tmp_path, "stateless", rule(wait_seconds=30)) as at:
        calling = asyncio.ensure_future(at.ada.client.call_tool("demo_echo", {"text": "all"}))
        (id_,) = await open_asks(at)
        done(await edit(at, id_, {"text": "some"}, reason="Not all."), 200)
        told, made = (each.text for each in (await calling).content)
        assert told == '@bob approved it with other arguments, {"text":"some"}, saying: Not all.'
        assert json.loads(made) == {"text": "some"}


async def test_other_arguments_are_held_to_the_schema_the_rights_and_the_same_rule(tmp_path):
    rules = (rule("never", with_text("never"), verdict="deny"), rule())
    async with table(tmp_path, "stateless", *rules) as at:
        id_ = await at.asked(text="all")
        for arguments, sentence in (
            ({"text": 7}, "do not match"),
            ({"text": "never"}, "Another rule"),
            ({"text": "x" * 70_000}, "64 KiB"),
            ("none", "object"),
        ):
            wrong = refused(await edit(at, id_, arguments), 400, "argument_invalid")
            assert (wrong["field"], sentence in wrong["message"]) == ("arguments", True)
        for node in nodes_of(at.there.hub):
            allowed = {"ada": (with_text("all"), with_text("rest"))}
            wanted = msgspec.structs.replace(node.behind._spec, backends={}, grants=allowed)
            await node.behind.rights.configure(wanted)
        wrong = refused(await edit(at, id_, {"text": "some"}), 400, "argument_invalid")
        assert "not allowed" in wrong["message"]
        assert at.calls() == []
        done(await edit(at, id_, {"text": "rest"}), 200)


async def test_other_arguments_are_for_who_is_asked_in_person(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="all")
        path, body = f"{ASKS}/{id_}/edit", {"arguments": {"text": "some"}}
        # Nobody's assistant acts in another's name by it.
        refused(await at.bob.ask("POST", path, body), 403, "person_needed")
        cyd = await at.there.person("cyd")
        theirs = Asker(at.there.port, cyd.token, "cyd")
        refused(await theirs.ask("POST", path, body), 404, "ask_unknown")
        other = await at.rest.did("POST", "/v1/me/credentials", {"label": "other"})
        hers = await Browser(at.there.port).sign_in(other["token"])
        refused(
            await hers.ask("POST", path, body, folkmoot_confirm=other["token"]),
            403,
            "ask_not_yours",
        )
        assert at.calls() == []
        done(await edit(at, id_, {"text": "some"}), 200)
        await at.outcome((await at.outcome(id_))["edited_as"])
        assert at.calls() == [{"name": "echo", "arguments": {"text": "some"}}]


async def test_a_program_reads_which_other_arguments_were_approved(tmp_path):
    async with table(tmp_path, "stateless") as at:
        asked = {"tool": "shell", "arguments": {"command": "rm -r ."}, "to": "bob"}
        made = await at.rest.did("POST", ASKS, asked)
        id_ = made["ask_id"]
        path, body = f"{ASKS}/{id_}/edit", {"arguments": {"command": "ls"}}
        refused(await at.rest.ask("POST", path, body), 403, "ask_not_yours")
        new = done(await at.bob.ask("POST", path, body), 200)
        old = await at.rest.get(f"{ASKS}/{id_}")
        # It does what it asked about only if that itself is approved.
        assert (old["state"], old["edited_as"]) == ("edited", new["id"])
        found = await at.rest.get(f"{ASKS}/{new['id']}")
        assert (found["state"], found["arguments"]) == ("approved", {"command": "ls"})
        assert at.calls() == []


async def test_after_the_rules_change_no_other_arguments_are_approved(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        id_ = await at.asked(text="all")
        ruled(at.there, rule(reason="Another one."))
        refused(await edit(at, id_, {"text": "some"}), 409, "ask_outdated")
        assert (await at.ada.call("ask_result", ask=id_))["state"] == "open"
        assert at.calls() == []


async def test_an_assistant_reads_with_its_mail_how_many_programs_wait(tmp_path):
    async with table(tmp_path, "stateless", rule()) as at:
        theirs = await at.there.returning(at.bob.token)
        assert "asks" not in await theirs.call("msg_digest")
        id_ = await at.asked(text="one")
        assert (await theirs.call("msg_digest"))["asks"] == 1
        assert "asks" not in await at.ada.call("msg_digest")
        made = await at.bob.did("POST", "/v1/me/credentials", {"label": "x", "scope": "mail.read"})
        mail_alone = await at.there.returning(made["token"])
        assert "asks" not in await mail_alone.call("msg_digest")
        done(await at.decide(id_, "reject"), 200)
        assert "asks" not in await theirs.call("msg_digest")
