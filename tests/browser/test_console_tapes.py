"""The console's tapes and held messages in a browser, against a real hub and a real proxy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.proxy.tape import TapeRecorder, TapeSide
from tests.browser.console import Console, Operated, Web
from tests.browser.harness import Desk, Person, check_axe, expect, shows
from tests.forge.forked import Forked
from tests.process import Process, environment
from tests.proxy.tape.studio import Studio, StudioClock, recording

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='hit'\"><script>document.title='hit'</script>"
RULES = """
[[rule]]
name = "ask first <b>"
when = { tool = "delete", type = "request" }
action = "hold"
reason = "Really? <i>"
"""
# A server that answers a call with the arguments it got.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = json.dumps(asked["params"]["arguments"])
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


class World(NamedTuple):
    """A hub that records, its operator, and what proxies of the same user need to be found."""

    hub: str
    folder: Path
    token: str
    ada: Person
    variables: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    base = tmp_path_factory.mktemp("tapes")
    folder = base / "recorded"
    folder.mkdir()
    variables = {"XDG_RUNTIME_DIR": str(base), "XDG_STATE_HOME": str(base / "state")}
    with recording(folder / "before.jsonl") as studio:
        talk(studio, "Hello")
    with recording(folder / "after.jsonl") as studio:
        talk(studio, "Good day")
        studio.tool(9, "extra", "only here")
    chosen = {"FOLKMOOT_RATE_LIMITS": "off", "FOLKMOOT_RECORD_FOLDER": str(folder)}
    with Process(base / "hub", **chosen, **variables) as running:
        here = Operated(running)
        ada = Person(here.url, "ada")
        yield World(here.url, folder, here.token("ada"), ada, variables)


def talk(studio: Studio, greeting: str) -> None:
    """A conversation with calls of every outcome."""
    studio.tool(1, "greet", greeting, took=0.2, who="Ada")
    studio.tool(2, "slow", "done", took=2.5)
    studio.tool(3, "fail", "It broke.", failed=True)
    studio.call(4, "tools/list", result={"tools": [{"name": "greet"}]})


def opened(desk: Desk, world: World, path: str = "/tapes", **options: Any) -> Web:
    """A page of the console, for the operator."""
    web = Console(desk, world.hub, world.token, path, **options)
    expect(web.page.locator("#page-title")).to_be_visible()
    return web


def moments(web: Web) -> Any:
    return web.page.get_by_role("list", name="Timeline").get_by_role("button")


def test_a_tape_is_watched_while_the_hub_records_it_and_filtered(world, desk):
    web = opened(desk, world)
    row = web.page.get_by_role("row").filter(has_text="recording")
    expect(row).to_have_count(1)
    world.ada.call("msg/whoami")
    row.get_by_role("link").click()
    expect(web.text("Live.")).to_be_visible()
    world.ada.call("msg/lookup", handle="ada")
    asked = moments(web).filter(has_text="tools/call msg").filter(has_text="lookup")
    expect(asked).to_have_count(2)
    asked.first.click()
    pair = web.page.get_by_role("region", name="Message")
    expect(pair.get_by_label("Request", exact=True)).to_contain_text('"handle": "ada"')
    expect(pair.get_by_label("Answer", exact=True)).to_contain_text('"result"')
    expect(pair.get_by_text("Answered after")).to_be_visible()
    # What was redacted when it was recorded is nowhere to be had.
    assert world.ada.token not in web.page.content()
    assert "message=" in web.page.url
    asked.first.press("ArrowDown")
    expect(asked.last).to_be_focused()
    pair.get_by_role("button", name="Close").press("Escape")
    expect(pair).to_have_count(0)
    expect(asked.first).to_be_focused()
    # The filter is set while the tape is asked for what is new; nothing is asked without it then.
    late, unfiltered, news = [], [], "**/messages?*cursor=*"
    web.page.route(news, lambda it: late.append(it), times=1)
    while not late:
        web.page.wait_for_timeout(50)
    web.text("Filter", exact=True).click()
    web.field("Tool, prompt or resource").fill("whoami")
    expect(asked).to_have_count(0)
    with web.page.expect_response(news):
        late[0].continue_()
    web.page.on("request", lambda it: "whoami" in it.url or unfiltered.append(it.url))
    for _ in range(2):
        with web.page.expect_response(news):
            web.page.clock.fast_forward("00:06")
    assert not unfiltered
    expect(moments(web).first).to_contain_text("whoami")
    # What comes while a filter is set is filtered too.
    world.ada.call("msg/lookup", handle="ada")
    world.ada.call("msg/whoami")
    expect(moments(web)).to_have_count(4)
    expect(asked).to_have_count(0)
    web.page.reload()
    expect(moments(web).first).to_contain_text("whoami")
    web.field("Tool, prompt or resource").fill("nothing-like-it")
    expect(web.text("No message matches.")).to_be_visible()
    web.button("Show all messages").click()
    expect(moments(web).first).to_be_visible()


@contextmanager
def proxied(world: World, tmp_path: Path) -> Iterator[Any]:
    """A proxy that holds calls, as a client starts it."""
    rules, server = tmp_path / "rules.toml", tmp_path / "server.py"
    rules.write_text(RULES)
    server.write_text(SERVER)
    child = Forked(
        ["proxy", "--eras", "pass", "--rules", str(rules), "--record", str(tmp_path / "p.jsonl"),
         "--", sys.executable, str(server)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(**world.variables),
    )  # fmt: skip
    try:
        yield child
    finally:
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
        child.kill()
        child.wait()


def send(proxy: Any, number: int, path: str) -> None:
    params = {"name": "delete", "arguments": {"path": path}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    proxy.stdin.write(json.dumps(message) + "\n")
    proxy.stdin.flush()


def test_a_held_message_is_edited_and_arrives_changed_and_another_is_dropped(world, desk, tmp_path):
    with proxied(world, tmp_path) as proxy:
        send(proxy, 1, f"/old {HOSTILE}")
        web = opened(desk, world)
        card = web.page.get_by_role("article", name="Call the tool delete")
        shows(card, "ask first <b>: Really? <i>", f"proxy {proxy.pid}")
        card.get_by_role("button", name="Edit").click()
        editor = card.get_by_label("The message, as JSON")
        expect(editor).to_have_value(re.compile("onerror"))
        message = json.loads(editor.input_value())
        editor.fill("{")
        expect(card.get_by_role("alert")).to_contain_text("not valid JSON")
        release = card.get_by_role("button", name="Release with my changes")
        expect(release).to_be_disabled()
        web.ignored = ("400 (Bad Request)",)
        editor.fill(json.dumps({**message, "id": 2}))
        release.click()
        expect(
            web.text("The id and the method of a held message cannot be edited.")
        ).to_be_visible()
        message["params"]["arguments"] = {"path": "/new"}
        editor.fill(json.dumps(message))
        release.click()
        expect(web.text("Released with your changes: Call the tool delete.")).to_be_visible()
        expect(card).to_have_count(0)
        answer = json.loads(proxy.stdout.readline())
        assert answer["result"]["content"][0]["text"] == '{"path": "/new"}'
        send(proxy, 2, "/again")
        expect(card).to_be_visible()
        card.get_by_role("button", name="Drop…").click()
        card.get_by_role("textbox", name="Reason").fill("Not today.")
        card.get_by_role("dialog").get_by_role("button", name="Drop").click()
        expect(card).to_have_count(0)
        assert "Not today." in json.loads(proxy.stdout.readline())["error"]["message"]
        # The proxy's tape is there too, and has both: what the client sent, and what went on.
        web.page.reload()
        web.page.get_by_role("link", name="p.jsonl").click()
        moments(web).filter(has_text="by ask first <b>").first.click()
        pair = web.page.get_by_role("region", name="Message")
        expect(pair.get_by_label("Changes of Request")).to_contain_text("/new")
        expect(web.page).to_have_title(re.compile("p.jsonl"))


def test_two_tapes_are_compared_and_the_slow_and_the_failed_calls_are_found(world, desk):
    web = opened(desk, world, "/tapes/before.jsonl?view=numbers")
    slow = web.page.get_by_role("table", name="Slowest calls")
    shows(slow.get_by_role("row").nth(1), "tools/call slow", "2.5 s")
    failed = web.page.get_by_role("table", name="Errors")
    expect(failed.get_by_role("row")).to_have_count(2)
    expect(web.page.get_by_role("img", name="Over the time of the tape")).to_be_visible()
    failed.get_by_role("link", name="tools/call fail").click()
    pair = web.page.get_by_role("region", name="Message")
    expect(pair.get_by_label("Answer", exact=True)).to_contain_text("It broke.")
    web.page.get_by_role("link", name="Compare").click()
    web.field("Compare with").select_option(label="after.jsonl")
    calls = web.page.get_by_role("list", name="Calls")
    expect(calls.get_by_role("listitem")).to_have_count(2)
    expect(web.text("3 the same · 1 different answer · 1 only in the other tape")).to_be_visible()
    changed = calls.get_by_role("button", name="tools/call greet")
    expect(changed).to_contain_text("different answer")
    changed.click()
    shows(web.page.get_by_role("list", name="Changes of Answer"), "Hello", "Good day")
    web.field("Show equal calls too").check()
    expect(calls.locator("> li")).to_have_count(5)
    web.page.get_by_role("link", name="Use it").click()
    serve = web.page.get_by_role("textbox", name="Serve this tape")
    expect(serve).to_have_value(f"folkmoot tape serve {world.folder / 'before.jsonl'}")
    with web.page.expect_download() as downloading:
        web.page.get_by_role("link", name="Download").click()
    saved = Path(downloading.value.path())
    assert saved.read_bytes() == (world.folder / "before.jsonl").read_bytes()


def hostile(path: Path) -> None:
    """A tape with markup in every field that a stranger can fill."""
    clock = StudioClock()
    with recording(path.with_name("plain.jsonl")) as plain:
        plain.call(2, HOSTILE, {"uri": "plain"})
    recorder = TapeRecorder.open(
        path,
        clock=clock,
        client=TapeSide("stdio", HOSTILE),
        server=TapeSide("stdio", HOSTILE),
        program=HOSTILE,
        redactor=None,
        note=HOSTILE,
    )
    studio = Studio(recorder, clock)
    studio.tool(1, HOSTILE, HOSTILE, word=HOSTILE)
    studio.call(2, HOSTILE, {"uri": HOSTILE}, error={"code": -1, "message": HOSTILE})
    studio.call(
        3, "resources/read", {"uri": "javascript:document.title='hit'"}, result={HOSTILE: 1}
    )
    studio.tool(4, "w" * 400, "y" * 100_000)
    recorder.close()


def test_hostile_text_in_every_field_of_a_tape_stays_text(world, desk):
    hostile(world.folder / "hostile.jsonl")
    web = opened(desk, world, width=390)
    expect(web.page.get_by_role("row").filter(has_text="hostile.jsonl")).to_contain_text(HOSTILE)
    web.page.get_by_role("link", name="hostile.jsonl").click()
    expect(web.text("recorded without redaction")).to_be_visible()
    expect(moments(web)).to_have_count(8)
    for number in (0, 3, 5, 7):
        moments(web).nth(number).click()
        pair = web.page.get_by_role("region", name="Message")
        expect(pair.get_by_label("Answer", exact=True)).to_be_visible()
        web.fits()
        moments(web).nth(number).click()
        expect(pair).to_have_count(0)
    for view in ("Numbers", "Compare", "Use it"):
        web.page.get_by_role("link", name=view).click()
        if view == "Compare":
            web.field("Compare with").select_option(label="plain.jsonl")
            web.page.get_by_role("list", name="Calls").get_by_role("button").first.click()
            expect(web.page.get_by_label("Changes of Request")).to_contain_text("onerror")
        web.fits()
    assert web.page.locator("main img:not([alt])").count() == 0
    assert web.page.locator("script").count() == 1
    assert web.page.locator("main a[href^=javascript]").count() == 0
    expect(web.page).not_to_have_title(re.compile("hit"))


def test_a_damaged_tape_a_wrong_name_and_an_ordinary_account_are_told_what_to_do(world, desk):
    broken = world.folder / "broken.jsonl"
    lines = (world.folder / "before.jsonl").read_bytes().splitlines(keepends=True)
    broken.write_bytes(b"".join(lines[:3]) + b"rubbish\n" + b"".join(lines[3:]))
    web = opened(desk, world)
    web.ignored = ("422 (Unproc", "404 (Not Found)")
    web.page.get_by_role("link", name="broken.jsonl").click()
    expect(web.page.get_by_role("alert")).to_contain_text("is damaged at byte")
    broken.unlink()
    web.page.goto(f"{web.hub}/tapes/..%2F..%2Fetc%2Fpasswd")
    expect(web.text("There is no such tape.")).to_be_visible()
    bob = Person(world.hub, "bob")
    other = Console(desk, world.hub, bob.token, "/tapes/before.jsonl")
    expect(other.text("This page is for operators of the hub.")).to_be_visible()
    expect(other.page.get_by_role("link", name="Tapes")).to_have_count(0)


@pytest.mark.long
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_on_tapes(world, desk, tmp_path, theme, width):
    with proxied(world, tmp_path) as proxy:
        send(proxy, 1, "/old")
        web = opened(desk, world, width=width, color_scheme=theme)
        card = web.page.get_by_role("article", name="Call the tool delete")
        card.get_by_role("button", name="Edit").click()
        expect(card.get_by_label("The message, as JSON")).to_be_visible()
        check_axe(web.page, web.page.url)
    for path, there in (
        ("/tapes/before.jsonl?message=OFFSET", "Raw line"),
        ("/tapes/before.jsonl?view=numbers", "Slowest calls"),
        ("/tapes/before.jsonl?view=compare&with=/after.jsonl", "different answer"),
        ("/tapes/before.jsonl?view=use", "Make a transcript for a bug report"),
    ):
        first = (world.folder / "before.jsonl").read_bytes().index(b"\n") + 1
        web.page.goto(web.hub + path.replace("OFFSET", str(first)))
        expect(web.text(there).first).to_be_visible()
        check_axe(web.page, web.page.url)
        web.fits()
