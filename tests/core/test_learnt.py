"""Types that threads may use first at the same moment are learnt before there are threads."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import msgspec
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.rooms.machine.changes import Granted

learning = []

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.endswith("msgspec/_utils.py"):
        learning.append(code.co_name)

sys.setprofile(note)
decode_mcpx(b'{"protocol":"mcpx/v1","kind":"a.b","to":null,"payload":{}}')
msgspec.convert({"recipient": "ann", "capabilities": ["chat.*"], "own": [True]}, Granted)
sys.setprofile(None)
assert not learning, learning

class New(msgspec.Struct):
    name: str

sys.setprofile(note)
msgspec.convert({"name": "new"}, New)
sys.setprofile(None)
assert learning, "this no longer shows when a type is learnt"
"""


def test_nothing_is_learnt_when_a_rooms_history_is_read():
    """Histories are read in threads, several at once, and msgspec crashes when it learns then."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
