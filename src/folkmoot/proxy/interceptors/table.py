"""The table of built-in interceptors: what rules may `use`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from folkmoot.proxy.interceptors.base import Action, Means, Options
from folkmoot.proxy.interceptors.limits import RateLimit, RateOptions, SizeLimit, SizeOptions
from folkmoot.proxy.interceptors.redact import Redact, RedactOptions
from folkmoot.proxy.interceptors.schemacheck import SchemaCheck, SchemaOptions
from folkmoot.proxy.interceptors.scrub import Scrub, ScrubOptions
from folkmoot.proxy.interceptors.tools import ToolOptions, Tools
from folkmoot.proxy.interceptors.trouble import FaultOptions, Faults, Latency, LatencyOptions


class BuiltIn(msgspec.Struct, frozen=True):
    """One interceptor that comes with the program."""

    name: str
    does: str
    options: type[Options]
    make: Callable[[Any, Means], Action]


BUILT_IN: Final = {
    built_in.name: built_in
    for built_in in (
        BuiltIn(
            "tools",
            "Lists only the tools that are allowed, and stops calls of the others",
            ToolOptions,
            Tools,
        ),
        BuiltIn(
            "schema-check",
            "Checks arguments and results against the schemas of the server's tools",
            SchemaOptions,
            SchemaCheck,
        ),
        BuiltIn(
            "scrub-descriptions",
            "Removes hidden characters and instructions to the model from descriptions",
            ScrubOptions,
            Scrub,
        ),
        BuiltIn("redact", "Replaces secrets in arguments and results", RedactOptions, Redact),
        BuiltIn("rate-limit", "Limits the calls per minute", RateOptions, RateLimit),
        BuiltIn("size-limit", "Stops messages that are too large", SizeOptions, SizeLimit),
        BuiltIn("latency", "Delays messages, for tests", LatencyOptions, Latency),
        BuiltIn("faults", "Makes messages fail, for tests", FaultOptions, Faults),
    )
}
"""Every built-in interceptor by its name, in the order of the documentation."""
