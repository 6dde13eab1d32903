"""`folkmoot room`: rooms from a terminal.

`rest` asks the hub over HTTP, once for each command; `join` and `tail` stay in a room through
`folkmoot.client`. An envelope becomes a `Look` (`look`, with the words of each kind in `tellers`),
which is drawn on a terminal by `draw` or printed as a line by `lines`. The live view is `view`: a
transcript that scrolls by, an input line and a status line; `deciding` knows which proposals wait.
"""

from __future__ import annotations
