"""The first ten minutes: from an empty folder, with no terminal after `folkmoot serve`.

With FOLKMOOT_FRAMES=FOLDER the walk leaves pictures there, which the README's moving one is of:

    ffmpeg -framerate 2/5 -i FOLDER/%02d.png -plays 0 -f apng \\
      -vf "scale=960:600:force_original_aspect_ratio=decrease,pad=960:600:-1:-1:0xe8e4da" \\
      src/folkmoot/web/images/first-run.png
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.browser.harness import expect
from tests.browser.test_passkeys import Device
from tests.process import Process

pytestmark = pytest.mark.browser

SMALL = Path(__file__).parents[1] / "cli" / "small_backend.py"


@pytest.fixture
def fresh(tmp_path):
    """A hub on an empty folder, and the link that it prints."""
    with Process(tmp_path / "data", FOLKMOOT_RATE_LIMITS="off") as running:
        yield f"http://localhost:{running.port}", running.says(r"Set up this hub: (\S+)")


def frame(web):
    """A picture of the page as it is, where somebody wants one."""
    if folder := os.environ.get("FOLKMOOT_FRAMES"):
        number = len(list(Path(folder).glob("*.png"))) + 1
        web.page.screenshot(path=f"{folder}/{number:02}.png")


def set_up(desk, link, handle="ada", **options):
    """The owner's browser, once they have an account and a passkey."""
    hub, slash, path = link.partition("/set-up")
    web = Device(desk, hub, f"{slash}{path}", **options)
    expect(web.page.get_by_role("heading", name="Set up this hub")).to_be_visible()
    assert path not in web.page.url, "the secret stays in no history"
    expect(web.field("Handle")).to_be_focused()
    web.checked()
    web.page.keyboard.type(handle)
    frame(web)
    web.page.keyboard.press("Enter")
    expect(web.page.get_by_role("heading", name=f"You are @{handle}")).to_be_visible()
    web.checked()
    web.press("Make a passkey", says="Your passkey is ready.")
    assert not web.secrets()
    web.field("I have saved the recovery code.").check()
    frame(web)
    web.press("Continue")
    expect(web.page).to_have_url(f"{hub}/")
    return web


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_the_owner_sets_up_a_hub_and_runs_it_and_the_link_is_worth_nothing_then(
    fresh, desk, theme, width
):
    hub, link = fresh
    owner = set_up(desk, link, width=width, color_scheme=theme)
    owner.page.goto(f"{hub}/people")
    expect(owner.page.get_by_role("link", name="@ada").first).to_be_visible()
    owner.checked()
    # With the passkey they are an operator again.
    owner.context.clear_cookies()
    owner.page.goto(f"{hub}/sign-in?next=/people")
    owner.enter()
    expect(owner.page.get_by_role("link", name="@ada").first).to_be_visible()
    late = Device(desk, hub, link.removeprefix(hub), width=width, ignored=("403 (Forbidden)",))
    late.field("Handle").fill("mallory")
    late.press("Create account", says="This link does not work any more.")
    late.checked()
    late.page.reload()
    expect(late.text("open the link again that it printed")).to_be_visible()


def calls(settings, tool, **arguments):
    """What a real client is answered that was given these settings: the MCP Python SDK."""
    [server] = json.loads(settings)["mcpServers"].values()

    async def main():
        async with (
            httpx2.AsyncClient(headers=server["headers"], timeout=60) as http,
            Client(streamable_http_client(server["url"], http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    # The browser's driver runs a loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        told = thread.submit(asyncio.run, main()).result(60)
    assert not told.is_error, told
    return json.loads(told.content[0].text)


def connect(web):
    """Take the settings for an assistant that cannot sign in, and have it call."""
    web.page.locator("label", has_text="Cursor").click()
    web.press("use a token")
    field = web.field("Add this to ~/.cursor/mcp.json:", exact=True)
    expect(field).to_have_value(re.compile("Bearer sk_"))
    settings = field.input_value()
    expect(web.text("Waiting for its first call…")).to_be_visible()
    assert calls(settings, "msg_whoami")["handle"]
    return settings


def pasted(folder, name):
    """What somebody pastes to add a server with two tools."""
    listed = [
        {"name": tool, "description": f"Can {tool}.", "inputSchema": {"type": "object"}}
        for tool in ("echo", "wipe")
    ]
    (folder / "tools.json").write_text(json.dumps({"tools": listed}))
    program = {"command": sys.executable, "args": ["-SE", str(SMALL), str(folder / "tools.json")]}
    return json.dumps({"mcpServers": {name: program}})


def step(web, title):
    """One step of what to do first; it is opened."""
    found = web.page.locator("details", has_text=title)
    if found.get_attribute("open") is None:
        found.locator("summary").click()
    return found


def test_the_first_ten_minutes_of_two_people_need_no_terminal(fresh, desk, tmp_path):
    hub, link = fresh
    owner = set_up(desk, link)
    expect(owner.page.locator(".begin details")).to_have_count(4)
    owner.checked()
    frame(owner)
    connect(owner)
    expect(owner.page.get_by_text("Connect an assistant (done)")).to_be_visible()
    frame(owner)
    # A friend is invited, on another computer.
    step(owner, "Invite someone")
    owner.submit("Make a link", {"Message (optional)": "The boat leaves at six."})
    expect(owner.text("This link works only on this computer.")).to_be_visible()
    owner.checked()
    frame(owner)
    invitation = owner.field("Invitation link", exact=True).input_value()
    friend = Device(desk, hub, invitation.removeprefix(hub))
    expect(friend.text("@ada invited you to Folkmoot.")).to_be_visible()
    frame(friend)
    friend.page.get_by_role("link", name="Create your account").click()
    friend.submit("Create account", {"Handle": "bob"}, says="You are @bob")
    friend.press("Make a passkey", says="Your passkey is ready.")
    friend.field("I have saved the recovery code.").check()
    friend.press("Continue")
    # Whoever does not run the hub adds no server.
    expect(friend.page.locator(".begin details")).to_have_count(3)
    expect(friend.page.get_by_role("link", name="People")).to_have_count(0)
    settings = connect(friend)
    # A room, which the friend's assistant enters.
    owner.page.reload()
    step(owner, "Make a room")
    owner.submit("Create", {"Name of the room": "harbour"})
    expect(owner.page).to_have_url(f"{hub}/rooms/harbour")
    calls(settings, "room_join", room="harbour")
    # A server is added with the passkey, and one of its tools allowed to one person.
    owner.page.goto(f"{hub}/")
    step(owner, "Add a server").get_by_role("link", name="Add a server").click()
    owner.field("mcpServers JSON, a command line or a URL").fill(pasted(tmp_path, "tides"))
    expect(owner.text("You confirm it with your passkey.")).to_be_visible()
    owner.button("Add", exact=True).click()
    expect(owner.page.get_by_role("heading", name="tides", exact=True)).to_be_visible()
    owner.button("Allow someone…").first.click()
    dialog = owner.page.get_by_role("dialog")
    owner.field("Find a person or group").fill("bo")
    dialog.get_by_label("@bob").check()
    dialog.get_by_label("What").select_option("some")
    dialog.get_by_label("tides:echo").check()
    frame(owner)
    dialog.get_by_role("button", name="Allow").click()
    expect(owner.text("@bob can call 1 of 2 tools")).to_be_visible()
    assert calls(settings, "tides_echo", text="six") == {"text": "six"}
    # It proposes something, which the owner decides on a phone.
    owner.page.goto(f"{hub}/rooms/harbour")
    phone = Device(desk, hub, "/sign-in?next=/asks", width=390, has_touch=True)
    phone.take(owner.kept())
    phone.enter()
    said = {"name": "chat.say", "arguments": {"text": "We sail at six."}}
    calls(settings, "room_propose", room="harbour", to="gateway", method="tools/call", params=said)
    expect(phone.button("Approve")).to_be_visible()
    frame(phone)
    phone.button("Approve").tap()
    expect(phone.text("You approved it")).to_be_visible()
    phone.checked()
    expect(owner.text("We sail at six.").first).to_be_visible()
    frame(owner)
    # Who is mentioned while away sees it on coming back.
    owner.submit("Send", {"Message to the room": "@bob, high water is at six."})
    friend.page.goto(f"{hub}/")
    news = friend.page.get_by_role("region", name="Rooms").locator("li", has_text="harbour")
    expect(news).to_contain_text("@ 1")
    frame(friend)
    news.get_by_role("link", name="harbour").click()
    expect(friend.page.locator(".message.for-me")).to_contain_text("high water is at six")
    expect(friend.page.get_by_role("navigation").get_by_text("@ 1")).to_have_count(0)
    # Where all is done nothing is left to begin with; what is left can be dismissed for good.
    owner.page.goto(f"{hub}/")
    expect(owner.page.locator(".section").first).to_be_visible()
    expect(owner.page.locator(".begin")).to_have_count(0)
    friend.page.goto(f"{hub}/")
    for done in ("Connect an assistant", "Make a room"):
        expect(friend.page.get_by_text(f"{done} (done)")).to_be_visible()
    friend.press("Dismiss")
    expect(friend.page.locator(".begin")).to_have_count(0)
    friend.page.reload()
    expect(friend.page.get_by_role("heading", name="Hello, bob")).to_be_visible()
    expect(friend.page.locator(".section").first).to_be_visible()
    expect(friend.page.locator(".begin")).to_have_count(0)
