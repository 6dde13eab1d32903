"""Which names promise a secret, so that one that stands in the open is noticed and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

PROMISES = re.compile(r"authorization|token|key|secret|passw|credential|cookie", re.IGNORECASE)
PAIR = re.compile(r"(-{0,2}[A-Za-z_][\w-]*)([=:])\s*(?!\$)(.+)", re.DOTALL)
"""`--token=…`, `TOKEN=…` or `Authorization: …`; what begins with `$` only refers to something."""
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
MASK = "***"


def promises_secret(name: str) -> bool:
    """Whether what has this name is probably nobody else's business."""
    return PROMISES.search(name) is not None


def masked_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """A command's arguments with `***` for each that an option, or its own name, says is secret."""
    awaited = False
    for argument in arguments:
        pair = PAIR.fullmatch(argument)
        if awaited and not argument.startswith(("-", "$")):
            yield MASK
        elif pair is not None and promises_secret(pair[1]):
            yield f"{pair[1]}{pair[2]}{MASK}"
        else:
            yield argument
        awaited = OPTION.fullmatch(argument) is not None and promises_secret(argument)


def has_open_secret(arguments: Sequence[str]) -> bool:
    """Whether a command's arguments hold something that looks like a secret."""
    return list(masked_arguments(arguments)) != list(arguments)
