"""The metaschemas of JSON Schema, in a form that can be applied within limits.

Where a metaschema names its own dialect, the library would go on with one that counts nothing; and
where it wants all items of a list to be different, each is compared with each. Both are left out.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

LEFT_OUT: Final[dict[str, type]] = {"$schema": str, "uniqueItems": bool}
"""Keywords, and of what type their values are: a property may have the same name."""


def metaschema_of(dialect: Any) -> Any:
    """A validator of schemas of a dialect, which applies the keywords of that dialect alone."""
    return dialect(_without(dialect.META_SCHEMA), registry=_registry())


@cache
def _registry() -> Any:
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing import Registry
    from referencing.jsonschema import specification_with

    known = []
    for uri in REGISTRY:
        contents = REGISTRY.contents(uri)
        specification = specification_with(contents["$schema"])
        known.append((uri, specification.create_resource(_without(contents))))
    return Registry[Any]().with_resources(known).crawl()


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without(each)
        for name, each in value.items()
        if name not in LEFT_OUT or not isinstance(each, LEFT_OUT[name])
    }
