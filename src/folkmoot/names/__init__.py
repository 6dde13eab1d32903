"""Names: a tool is called one thing inside, and may be spelled another way on the wire.

The *canonical* name is the specification's (`msg/send`, `ns:tool`) and the only one the hub thinks
in; `wire` spells it for clients and reads every spelling back.
"""

from __future__ import annotations

from folkmoot.names.wire import RESERVED_NAMESPACES, STYLES, NameStyle, WireNames, safe_name

__all__ = ["RESERVED_NAMESPACES", "STYLES", "NameStyle", "WireNames", "safe_name"]
