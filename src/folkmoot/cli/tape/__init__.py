"""`folkmoot tape`: recorded conversations, looked at, checked, compared and given away.

What a tape says is worked out in `folkmoot.proxy.tape`; here it is shown. `paper` knows what the
output can take (width, colour, arrows), `rows` how a message looks in a line, and each command has
a module of its own. Everything that stands on a tape may have been written by anyone, so all of it
goes through `cli.text` before it is shown.
"""

from __future__ import annotations
