from __future__ import annotations

import logging

from folkmoot.telemetry.logs import JsonFormatter
from folkmoot.telemetry.records import PlainRecord


def test_a_plain_record_reads_like_any_other() -> None:
    values = {"by": "ann", "token": "sk_12345678abc", "seconds": 0.5}
    made = PlainRecord("folkmoot.test", logging.INFO, "it happened", values)
    usual = logging.LogRecord("folkmoot.test", logging.INFO, "", 0, "it happened", None, None)
    vars(usual).update(values)
    usual.created = made.created
    assert JsonFormatter().format(made) == JsonFormatter().format(usual)
    assert "sk_" not in JsonFormatter().format(made)
    assert vars(usual).keys() <= vars(made).keys()


def test_a_plain_record_can_be_written_by_any_formatter() -> None:
    made = PlainRecord("folkmoot.test", logging.WARNING, "100% sure", {"by": "ann"})
    style = "%(levelname)s %(name)s:%(filename)s:%(lineno)d %(message)s %(by)s"
    assert logging.Formatter(style).format(made) == "WARNING folkmoot.test::0 100% sure ann"
