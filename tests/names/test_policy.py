"""The way out of a name: warned of in one release, hidden in the next, gone in the one after."""

from __future__ import annotations

import inspect
import logging
import sys
import types
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import pytest

from folkmoot import __version__
from folkmoot.names import Deprecation, Stage, deprecated, stage
from tests.harness import run
from tests.names.support import cases, refusal

DATES: dict[str, Any] = {"since": "1.4.0", "removed_in": "1.6.0"}
GOING = "is deprecated since 1.4.0 and will be gone in 1.6.0."
Logged = list[tuple[str, str]]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], Logged]]:
    """What was logged up to now: level and text."""
    with caplog.at_level(logging.DEBUG):
        yield lambda: [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.requirement("names.deprecation-n")
def test_in_release_n_a_deprecated_tool_works_and_logs_a_warning(logged):
    @deprecated(**DATES, use="process_data_v2", version="1.4.2")
    async def process_data(legacy: str, *, times: int = 2) -> str:
        """Legacy format."""
        return legacy * times

    assert run(process_data("ab", times=3)) == "ababab"
    assert logged() == [("WARNING", f"process_data {GOING} Use process_data_v2.")]
    mark: Deprecation = process_data.__deprecated_tool__  # type: ignore[attr-defined]
    assert mark.stage is Stage.WARNED
    assert not mark.hidden


@pytest.mark.requirement("names.deprecation-n-plus-1")
def test_in_release_n_plus_1_it_works_logs_an_error_and_is_left_out_of_the_documentation(logged):
    @deprecated(**DATES, version="1.5.0")
    def process_data(legacy: str) -> str:
        return legacy

    assert process_data("ab") == "ab"
    assert logged() == [("ERROR", f"process_data {GOING}")]
    mark: Deprecation = process_data.__deprecated_tool__  # type: ignore[attr-defined]
    assert mark.stage is Stage.HIDDEN
    assert mark.hidden


def test_past_its_removal_it_still_works_and_logs_that_it_should_be_gone(logged):
    @deprecated(**DATES, use="new", version=lambda: "1.6.0", name="myproject:old")
    def old() -> int:
        return 1

    assert old() == 1
    assert logged() == [("ERROR", "myproject:old should be gone since 1.6.0. Use new.")]
    assert old.__deprecated_tool__.hidden  # type: ignore[attr-defined]


REACHED = {
    Stage.WARNED: ["0.9", "1.4.0.dev3", "1.4.1-beta.1+local", "1.5 and more", "9" * 100, None],
    Stage.HIDDEN: ["1.5.0", "v1.5", "1.5.0rc1", "1.5.12.post1"],
    Stage.REMOVED: ["1.6.0", "1.6", "1.6.0a1", "1.10.0", "2", "1!0.1"],
}


@pytest.mark.requirement("names.deprecation-n", "names.deprecation-n-plus-1")
@pytest.mark.parametrize(("reached", "version"), cases(REACHED))
def test_releases_are_counted_by_major_and_minor_number(version, reached):
    assert stage(Deprecation(**DATES), version) is reached


def test_a_removal_may_be_planned_for_a_patch_or_for_a_major_release():
    patch = Deprecation(since="1.4.0", removed_in="1.6.2")
    assert stage(patch, "1.6.1") is Stage.HIDDEN
    assert stage(patch, "1.6.2") is Stage.REMOVED
    major = Deprecation(since="1.9", removed_in="2.0")
    assert stage(major, "1.9.5") is Stage.WARNED
    assert stage(major, "2.0.0") is Stage.REMOVED


def test_dates_that_are_not_known_go_as_far_as_the_others_tell():
    assert stage(types.SimpleNamespace(since=None, removed_in=None), "9.0") is Stage.WARNED
    assert stage(types.SimpleNamespace(since="1.0", removed_in=None), "9.0") is Stage.HIDDEN
    assert stage(types.SimpleNamespace(since=None, removed_in="1.0"), "9.0") is Stage.REMOVED


def test_a_tool_that_is_called_often_logs_one_line_a_minute_that_counts_the_others(logged):
    now = 100.0

    @deprecated(**DATES, version="1.4", clock=lambda: now)
    def old() -> None:
        """Do nothing."""

    for _ in range(5):
        old()
    assert len(logged()) == 1
    now += 59.9
    old()
    assert len(logged()) == 1
    now += 0.1
    old()
    assert logged()[1:] == [("WARNING", f"old {GOING} (5 more calls since this was last said.)")]
    now += 60
    old()
    assert "more calls" not in logged()[2][1]


def test_every_call_is_logged_where_that_is_wanted(logged):
    always = Deprecation(**DATES, every=0)
    always.warn()
    always.warn(logging.getLogger("elsewhere"))
    assert logged() == [("WARNING", f"This name {GOING}")] * 2


def test_the_line_goes_to_the_logger_of_the_tools_module(caplog):
    @deprecated(**DATES)
    def old() -> None:
        """Do nothing."""

    old()
    assert [record.name for record in caplog.records] == [__name__]


def test_a_marked_function_keeps_its_signature_and_its_kind():
    def plain(a: int, *, b: str = "x") -> dict[str, int]:
        """Do it."""
        return {b: a}

    async def waits(a: int) -> int:
        return a

    class Waits:
        async def __call__(self, a: int) -> int:
            return a

    marked = deprecated(**DATES)(plain)
    assert inspect.signature(marked) == inspect.signature(plain)
    assert (marked.__name__, marked.__doc__) == ("plain", "Do it.")
    assert not inspect.iscoroutinefunction(marked)
    assert inspect.iscoroutinefunction(deprecated(**DATES)(waits))
    called: Any = deprecated(**DATES)(Waits())
    assert inspect.iscoroutinefunction(called)
    assert run(called(3)) == 3


def test_what_a_tool_raises_comes_through():
    @deprecated(**DATES)
    async def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(fails())


def test_the_version_is_that_of_the_functions_package_unless_told(monkeypatch):
    def version_of(module: str) -> str | None:
        def old() -> None:
            """Do nothing."""

        old.__module__ = module
        mark: Deprecation = deprecated(**DATES)(old).__deprecated_tool__  # type: ignore[attr-defined]
        return mark.version

    assert version_of("folkmoot.names") == __version__
    # A module that is installed under another name than its own.
    assert version_of("_hypothesis_pytestplugin") == metadata.version("hypothesis")
    assert version_of("__main__.old") is None
    written = types.ModuleType("written_here")
    written.__version__ = "1.5.3"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "written_here", written)
    assert version_of("written_here.tools") == "1.5.3"
    written.__version__ = "not yet"  # type: ignore[attr-defined]
    assert version_of("written_here.tools") is None
    main = types.ModuleType("__main__")
    main.__spec__ = types.SimpleNamespace(name="written_here.__main__")  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", main)
    written.__version__ = "1.6"  # type: ignore[attr-defined]
    assert version_of("__main__") == "1.6"


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"since": "soon", "removed_in": "1.6"}, "version-syntax"),
        ({"since": "1.4", "removed_in": "x" * 10_000}, "version-syntax"),
        ({"since": "1.4", "removed_in": "1.6", "version": "latest"}, "version-syntax"),
        ({"since": "1.4", "removed_in": "1.4.0"}, "removal-order"),
        ({"since": "1.10", "removed_in": "1.9"}, "removal-order"),
    ],
)
def test_a_deprecation_with_impossible_versions_is_refused_where_it_is_written(wrong, rule):
    for declare in (Deprecation, lambda **dates: deprecated(**dates)(print)):
        found = refusal(declare, **wrong)
        assert found.rule == rule
        assert len(str(found)) < 200


def test_a_mark_above_the_registration_is_refused_where_that_can_be_told():
    with pytest.raises(TypeError, match="below the decorator that registers"):
        deprecated(**DATES)(object())  # type: ignore[type-var]
