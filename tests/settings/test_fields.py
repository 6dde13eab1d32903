"""The table of settings: complete, described, consistent with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.settings import FIELDS, BadValue, Field, check, load, read_text
from folkmoot.settings.fields import in_effect
from folkmoot.settings.types import without_password
from tests.settings.conftest import cases

if TYPE_CHECKING:
    from collections.abc import Callable

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=6,
)
FIELD = st.sampled_from(sorted(FIELDS.values(), key=lambda field: field.path))


@pytest.mark.parametrize("path", FIELDS)
def test_every_setting_is_described_and_its_default_is_allowed(path):
    field = FIELDS[path]
    assert field.description.endswith(".")
    assert check(field, field.default) == field.default


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://hub:hush@db1:5432,[::1]:5433/folkmoot?password=hush&sslmode=require",
            "postgresql://hub@db1:5432,[::1]:5433/folkmoot",
        ),
        ("postgres://hub@/folkmoot?host=/run/postgresql", "postgres://hub@/folkmoot"),
        ("postgresql://db", "postgresql://db"),
        ("postgresql://hub:hu%40sh@db/folkmoot", "postgresql://hub@db/folkmoot"),
    ],
)
def test_the_address_of_a_database_is_shown_without_its_password(url, shown):
    loaded = load(environ={"FOLKMOOT_STORE_URL": url})
    assert loaded.settings.store.url == url
    assert [value for path, value, _ in in_effect(loaded) if path == "store.url"] == [shown]
    assert repr(shown) in repr(loaded.settings.store)
    assert "hush" not in repr(loaded)


UNCLEAR = [f"postgresql://hub:hu{mark}sh@db/x" for mark in "/?#@"]


@pytest.mark.parametrize("url", [*UNCLEAR, "postgresql://hub:hush", "hub:hush@db"])
def test_an_address_that_is_not_clear_is_refused_and_not_shown(url):
    assert isinstance(outcome(check, FIELDS["store.url"], url), BadValue)
    assert "hu" not in without_password(url).removeprefix("postgresql")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("nats://nats1", "nats://nats1"),
        ("tls://hub:hush@nats1:4222,nats2:4222", "tls://nats1:4222,nats2:4222"),
        ("nats://hush@[::1]:4222/", "nats://[::1]:4222/"),
        ("nats://a:hush@n1,nats://b:hu%2Csh@n2", "nats://n1,nats://n2"),
    ],
)
def test_the_addresses_of_a_bus_are_shown_without_what_signs_in(url, shown):
    others = {"store.url": "postgresql://db", "cluster.address": "http://node1:8420"}
    loaded = load(environ={"FOLKMOOT_BUS_URL": url}, options=others)
    assert loaded.settings.bus.url == url
    assert [value for path, value, _ in in_effect(loaded) if path == "bus.url"] == [shown]
    assert repr(shown) in repr(loaded.settings.bus)
    assert "hush" not in repr(loaded)


def test_no_two_settings_share_a_variable_or_an_option():
    assert len({field.variable for field in FIELDS.values()}) == len(FIELDS)
    assert len({field.option for field in FIELDS.values()}) == len(FIELDS)


@given(FIELD, ANYTHING)
def test_any_value_is_taken_or_refused_with_a_sentence(field, value):
    taken = outcome(check, field, value)
    assert isinstance(taken, BadValue) or check(field, taken) == taken


@given(FIELD, st.text())
@example(FIELDS["port"], "0\x1f")
def test_any_text_is_taken_or_refused_with_a_sentence(field, text):
    taken = outcome(read_text, field, text)
    assert isinstance(taken, BadValue) or check(field, taken) == taken


def outcome(function: Callable[[Field, Any], Any], field: Field, value: Any) -> Any:
    try:
        return function(field, value)
    except BadValue as error:
        refused = error
    assert str(refused).startswith("must be ")
    assert "\n" not in str(refused)
    return refused


NEARLY = {
    "port": ["8_0", "٨٠", "+80", "0x50", "", "9" * 5000],
    "http.shutdown_seconds": ["inf", "-1"],
    "telemetry.metrics": ["yes please", ""],
    "http.allowed_hosts": ["a b", "https://a", ",".join(f"h{number}" for number in range(101))],
    "host": ["", "[::1]", "127.0.0.1\n"],
    "data": ["", "~nobody-has-this-name/x"],
    "public_url": ["h.example", "ftp://h", "http://", "http://h:99999", "http://h:0"],
    "telemetry.otlp_endpoint": [
        "http://h/?",
        "http://h/#",
        "http://h/a b",
        "http://h\n",
        "http://[::1",
    ],
    "telemetry.service_name": ["", "\udcff"],
    "store.synchronous": ["Full"],
}


@pytest.mark.parametrize(("path", "text"), cases(NEARLY))
def test_text_that_is_nearly_a_value_is_refused(path, text):
    with pytest.raises(BadValue):
        read_text(FIELDS[path], text)
