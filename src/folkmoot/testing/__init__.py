"""Tests against MCP servers that are recorded once and replayed after.

- `plugin`: what pytest finds by itself: the marker `tape`, the fixture `tape`, the option `--tapes`
- `recorded`: `RecordedServer`, which is what the fixture gives a test
- `keeping`: puts what was recorded in a test on one tape
- `background`: a loop in a thread of its own, for what a test reaches by HTTP

The plugin is loaded in every run of pytest, so it imports none of the others before a test asks.
"""

from __future__ import annotations
