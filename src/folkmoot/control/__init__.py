"""Operator commands to a running hub, through one private socket in its data folder.

The *server* runs in the hub and has a table of *commands*; the *client* is for the command line. A
request is one line of JSON, `{"command": …, "arguments": {…}}`. The answer is any number of
`{"progress": {…}}` lines and then one `{"result": …}` or `{"error": {"code", "message"}}`. One
connection carries one request; closing it stops the command.
"""

from __future__ import annotations

from folkmoot.control.client import call
from folkmoot.control.commands import (
    backup_command,
    check_command,
    health_command,
    metrics_command,
    status_command,
)
from folkmoot.control.server import ControlServer
from folkmoot.control.wire import Command, Progress

__all__ = [
    "Command",
    "ControlServer",
    "Progress",
    "backup_command",
    "call",
    "check_command",
    "health_command",
    "metrics_command",
    "status_command",
]
