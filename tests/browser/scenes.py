"""A mailbox in which there is something to see, and how each of its views is reached."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.harness import Inbox, Person


def scene(hub: str) -> Person:
    """A mailbox in which there is something to see."""
    ada = Person(hub, "ada")
    people = {
        "bob": "Bob Weaver",
        "carla": "Carla Ruiz",
        "dmitri": "Dmitri Orlov",
        "eun": "Eun-ji Park",
        "fleet": "Fleet agent",
    }
    others = {}
    for handle, name in people.items():
        others[handle] = Person(hub, handle)
        others[handle].call("msg/set_profile", display_name=name)
    ada.call("msg/set_profile", display_name="Ada", status="At the harbour")
    others["dmitri"].call("msg/send", to="ada", body="Can you look at the draft by Friday?")
    ada.call("msg/send", to="carla", body="See you at the market.")
    bob = others["bob"]
    bob.call("msg/send", to="ada", body="The boat is ready. When do we leave?")
    ada.call("msg/inbox")
    others["fleet"].call("msg/send", to="ada", body="Nightly check: all 14 boats answered.")
    others["eun"].call("msg/send", to="ada", body="Thank you for the charts!", priority="fyi")
    first = ada.call("msg/send", to="bob", body="At six, if the wind holds.")
    bob.call(
        "msg/reply",
        message_id=first["message_id"],
        body="It will.\n\nForecast: https://example.org/wind",
    )
    bob.call(
        "msg/send", to="ada", body="Bring the big lamp, the small one is broken.", priority="urgent"
    )
    threads = ada.call("msg/threads")["threads"]
    carla = next(it for it in threads if it["other_handle"] == "carla")
    ada.call("msg/star", thread_id=carla["id"])
    ada.call("msg/add_contact", handle="bob")
    ada.call("msg/add_contact", handle="carla", nickname="Carla from the market")
    ada.call("msg/block", handle="dmitri", action="block")
    return ada


def show_list(_: Inbox) -> None:
    """The list is what opens."""


def show_thread(inbox: Inbox) -> None:
    inbox.open_thread("Bob Weaver")
    inbox.frame.locator(".letter").last.wait_for()


def show_compose(inbox: Inbox) -> None:
    inbox.button("Write", exact=True).click()
    inbox.field("To", exact=True).fill("ca")
    inbox.frame.get_by_role("option").first.wait_for()


def show_people(inbox: Inbox) -> None:
    inbox.button("People").click()
    inbox.text("Carla from the market").wait_for()


def show_settings(inbox: Inbox) -> None:
    inbox.button("Settings").click()
    inbox.frame.get_by_role("heading", name="Settings").wait_for()


def show_keys(inbox: Inbox) -> None:
    inbox.open_keys()
    inbox.button("Turn on").wait_for()


VIEWS: dict[str, Callable[[Inbox], None]] = {
    "list": show_list,
    "thread": show_thread,
    "compose": show_compose,
    "people": show_people,
    "settings": show_settings,
    "keys": show_keys,
}
