from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.telemetry import logs
from folkmoot.telemetry.limits import MAX_KNOWN_LINES
from folkmoot.telemetry.logs import JsonFormatter, PlainRecord
from folkmoot.telemetry.redaction import ITEMS_LIMIT, MASK, VALUE_LIMIT, redactor

TOKEN = "sk_" + "0a1b2c3d" * 8
CODE = "AB3K-9TW2-HNPQ"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    names = ("uvicorn", "asyncio")
    before = root.handlers[:], root.level, [logging.getLogger(n).level for n in names]
    hook = threading.excepthook
    yield
    logging.captureWarnings(capture=False)
    threading.excepthook = hook
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    for name, level in zip(names, before[2], strict=True):
        logging.getLogger(name).setLevel(level)


def written(say: Callable[[], None], how: logs.LogFormat = "json", level: str = "info") -> str:
    stream = io.StringIO()
    logs.configure(level, how, stream)
    say()
    return stream.getvalue()


def as_json(say: Callable[[], None]) -> dict[str, Any]:
    (line,) = written(say).splitlines()
    record = json.loads(line)
    assert isinstance(record, dict)
    return record


log = logging.getLogger("folkmoot.test")


def boom(error: Exception) -> None:
    raise error


def test_a_json_line_tells_when_who_and_what():
    record = as_json(lambda: log.info("hello %s", "there", extra={"room": "plaza", "seq": 7}))
    assert record.pop("ts").endswith("Z")
    told = {"level": "INFO", "logger": "folkmoot.test", "message": "hello there"}
    assert record == {**told, "room": "plaza", "seq": 7}


def test_a_text_line_tells_the_same_to_people():
    line = written(lambda: log.warning("careful", extra={"why": "two words", "n": 3}), "text")
    assert line.endswith('WARNING folkmoot.test careful why="two words" n=3\n')


@pytest.mark.parametrize("no_color", ["", "1"])
def test_auto_is_text_on_a_terminal_and_json_elsewhere(monkeypatch, no_color):
    monkeypatch.setenv("NO_COLOR", no_color)
    assert json.loads(written(lambda: log.info("x"), "auto"))["message"] == "x"
    terminal = Terminal()
    logs.configure("info", "auto", terminal)
    log.error("x")
    assert ("\x1b[" in terminal.getvalue()) is not bool(no_color)


def test_records_below_the_level_are_not_written():
    assert written(lambda: log.info("x"), level="warning") == ""


def test_an_extra_never_replaces_a_field_of_the_record():
    record = as_json(lambda: log.info("real", extra={"level": "fake", "ts": 1}))
    assert (record["level"], record["level_"]) == ("INFO", "fake")


@pytest.mark.requirement("log.tokens-redacted")
@pytest.mark.parametrize("how", ["json", "text"])
@pytest.mark.parametrize(
    "value",
    [
        f"a\nb {TOKEN}",
        {"token": "hunter2"},
        {"deep": {"authorization": ["hunter2"]}},
        [b"token=hunter2"],
        ("x", {TOKEN}),
        ValueError(f"token={TOKEN}"),
        bytearray(TOKEN.encode()),
        {TOKEN: 1},
    ],
    ids=str,
)
def test_a_secret_in_an_extra_is_masked(how, value):
    out = written(lambda: log.info("x", extra={"value": value}), how)
    assert TOKEN[3:] not in out
    assert "hunter2" not in out
    assert MASK in out


@pytest.mark.requirement("log.tokens-redacted")
@pytest.mark.parametrize("how", ["json", "text"])
def test_a_secret_in_an_exception_is_masked(how):
    def fail() -> None:
        try:
            boom(ValueError(f"cannot use {TOKEN}"))
        except ValueError:
            log.exception("it failed with %s", TOKEN)

    out = written(fail, how)
    assert TOKEN[3:] not in out
    assert "ValueError: cannot use" in out


@pytest.mark.parametrize("how", ["json", "text"])
def test_a_wrong_format_string_loses_neither_record_nor_secret(how):
    out = written(lambda: log.info("%d tokens", f"token={TOKEN}"), how)
    assert "%d tokens" in out
    assert TOKEN[3:] not in out


def test_a_value_that_cannot_be_shown_does_not_stop_the_record():
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    assert "Broken" in as_json(lambda: log.info("x", extra={"it": Broken()}))["it"]


@pytest.mark.parametrize("how", ["json", "text"])
def test_user_input_cannot_forge_a_line(how):
    forged = "x\r\n2026-11-15 INFO folkmoot forged\u2028\x1b[2J\x9b\u202e\x00"
    out = written(lambda: log.info("path %s", forged, extra={"p": forged}), how)
    assert out.count("\n") == 1
    assert not set("\r\x1b\x9b\u2028\u202e\x00") & set(out)


def test_an_exception_text_cannot_pose_as_a_record():
    def fail() -> None:
        try:
            boom(ValueError("x\n2026-11-15T00:00:00.000Z INFO folkmoot forged\rINFO"))
        except ValueError:
            log.exception("failed")

    _, *rest = written(fail, "text").splitlines()
    assert rest
    assert all(line.startswith("    | ") for line in rest)


def test_lone_surrogates_can_be_written():
    assert as_json(lambda: log.info("bad \ud800 name"))["message"] == "bad \\ud800 name"


def test_an_over_long_record_is_cut():
    def say() -> None:
        many = {f"k{n}": n for n in range(500)}
        log.info("m" * 1_000_000, extra={"v": "v" * 1_000_000, "many": many, "list": [1] * 9_999})

    record = as_json(say)
    assert len(record["message"]) < logs.MAX_LOG_MESSAGE + 20
    assert len(record["v"]) < VALUE_LIMIT + 20
    assert len(record["many"]) == ITEMS_LIMIT + 1
    assert len(record["list"]) == ITEMS_LIMIT + 1


@pytest.mark.parametrize("at", range(VALUE_LIMIT * 2 - 70, VALUE_LIMIT * 2 + 5, 5))
def test_a_secret_on_the_edge_of_the_cut_does_not_show_its_beginning(at):
    filler = f"{TOKEN} " * 200
    value = filler[: at // 2] + "." * (at - len(filler[: at // 2])) + TOKEN
    assert TOKEN[3:12] not in written(lambda: log.info("x", extra={"v": value}))


def test_deep_values_end_somewhere():
    nested: Any = "bottom"
    for _ in range(100):
        nested = {"in": nested}
    assert len(written(lambda: log.info("x", extra={"v": nested}))) < 4_000


def test_warnings_and_other_loggers_pass_the_same_redactor():
    def say() -> None:
        logging.getLogger("uvicorn.error").warning("bad request %s", f"/mcp?token={TOKEN}")
        logging.getLogger("some.library").info("got %s", CODE)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(capture=True)
            warnings.warn(f"odd token {TOKEN}", stacklevel=1)
            logging.captureWarnings(capture=False)

    out = written(say)
    assert out.count("\n") == 3
    assert TOKEN[3:] not in out
    assert CODE not in out


def test_what_the_loop_complains_about_passes_it_too():
    async def main() -> None:
        context = {"message": f"boom {TOKEN}", "exception": ValueError(TOKEN)}
        asyncio.get_running_loop().call_exception_handler(context)

    out = written(lambda: asyncio.run(main()))
    assert "boom" in out
    assert TOKEN[3:] not in out


def test_a_dying_thread_is_logged_and_not_printed(capfd):
    def say() -> None:
        logs.capture_uncaught()

        def die() -> None:
            raise ValueError(TOKEN)

        thread = threading.Thread(target=die, name="worker-7")
        thread.start()
        thread.join()

    out = written(say)
    assert json.loads(out)["ended"] == "worker-7"
    assert TOKEN[3:] not in out + capfd.readouterr().err


def test_a_stream_that_fails_shows_nothing_of_the_record(capfd):
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("no space left")

    logs.configure("info", "json", Full())
    log.info("token=%s", TOKEN)
    assert capfd.readouterr().err == ""


def test_uvicorn_is_quiet_unless_everything_is_wanted():
    def say() -> None:
        logging.getLogger("uvicorn.error").info("Started server process")

    assert written(say) == ""
    assert "Started" in written(say, level="debug")


secrets = st.sampled_from(
    [
        (TOKEN, TOKEN[3:]),
        ("sk_" + "f" * 64, "f" * 64),
        (CODE, CODE),
        ("token=Hunter2x&", "Hunter2x"),
        ('"token": "Hunter2x"', "Hunter2x"),
        ("Authorization: Bearer Hunter2x", "Hunter2x"),
        ("/invite/Hunter2xHunter2xHunter2x", "Hunter2x"),
        ("%73k_" + "a1" * 32, "a1" * 32),
        ("sk\\u005f" + "a1" * 32, "a1" * 32),
    ]
)
noise = st.text(max_size=60)


@pytest.mark.requirement("log.tokens-redacted")
@given(secret=secrets, before=noise, after=noise, how=st.sampled_from(["json", "text"]))
def test_no_planted_secret_is_found_in_the_output(secret, before, after, how):
    planted, seen = secret
    text = f"{before}{planted} {after}"

    def say() -> None:
        log.info(
            text.replace("%", "%%"),
            extra={"v": text, "d": {"k": [text]}, "b": text.encode("utf-8", "replace")},
        )
        log.info("%s and %r", text, text)
        try:
            boom(RuntimeError(text))
        except RuntimeError as error:
            log.warning(text.replace("%", "%%"), exc_info=error)
            log.warning("%s", {"inner": repr(error)})

    assert seen not in written(say, how)


@given(text=st.text(max_size=200), how=st.sampled_from(["json", "text"]))
def test_any_text_makes_exactly_one_line(text, how):
    out = written(lambda: log.info("%s", text, extra={"v": text}), how)
    assert out.count("\n") == 1
    assert len(out.splitlines()) == 1
    if how == "json":
        json.loads(out)


def test_a_plain_record_reads_like_any_other():
    values = {"by": "ann", "token": "sk_12345678abc", "seconds": 0.5}
    made = PlainRecord("folkmoot.test", logging.INFO, "it happened", values)
    usual = logging.LogRecord("folkmoot.test", logging.INFO, "", 0, "it happened", None, None)
    vars(usual).update(values)
    usual.created = made.created
    assert JsonFormatter().format(made) == JsonFormatter().format(usual)
    assert "sk_" not in JsonFormatter().format(made)
    assert vars(usual).keys() <= vars(made).keys()


def test_a_plain_record_can_be_written_by_any_formatter():
    made = PlainRecord("folkmoot.test", logging.WARNING, "100% sure", {"by": "ann"})
    style = "%(levelname)s %(name)s:%(filename)s:%(lineno)d %(message)s %(by)s"
    assert logging.Formatter(style).format(made) == "WARNING folkmoot.test::0 100% sure ann"


def test_a_line_that_comes_again_is_remembered_without_what_differs():
    texts = {"by": "ann", "about": "it"}
    say = partial(PlainRecord, "folkmoot.test", logging.INFO, "it happened")
    first, again = (JsonFormatter().format(say(texts, {"seconds": n, "id": f"i{n}"})) for n in "12")
    differs = {"ts": json.loads(first)["ts"], "seconds": "1", "id": "i1"}
    assert json.loads(first) == json.loads(again) | differs
    assert list(json.loads(again))[1:] == ["level", "logger", "message", *texts, "seconds", "id"]
    # What is not a text, and what is long, is not remembered.
    for values in ({"n": 1}, {"n": True}, {"n": 1.0}, {"n": [1]}, {"n": "x" * 4096}):
        told = json.loads(JsonFormatter().format(say(values, {"id": "i"})))
        assert repr(told["n"])[:100] == repr(values["n"])[:100]
        assert told["id"] == "i"


def test_remembered_lines_are_few_and_forgotten_when_more_is_hidden():
    record = partial(PlainRecord, "folkmoot.test", logging.INFO, "it happened")
    for number in range(MAX_KNOWN_LINES + 10):
        JsonFormatter().format(record({"by": f"person {number}"}))
    assert 0 < len(redactor.lines) <= MAX_KNOWN_LINES
    assert "person 1029" in JsonFormatter().format(record({"by": "person 1029"}))
    redactor.hide("person 1029")
    assert "person 1029" not in JsonFormatter().format(record({"by": "person 1029"}))
