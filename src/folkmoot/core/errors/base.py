"""The root of the tree: what every error knows, and the table of all of them."""

from __future__ import annotations

from typing import Any, ClassVar

from folkmoot.core.closecodes import CloseCode

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_ALLOWED = -32003


class FolkmootError(Exception):
    """The root of every error Folkmoot raises on purpose.

    The message is a clear sentence for the one who caused it; `data` holds what a program may want.
    """

    code: ClassVar[str] = "error"
    jsonrpc: ClassVar[int] = INTERNAL_ERROR
    http: ClassVar[int] = 500
    close: ClassVar[CloseCode] = CloseCode.INTERNAL

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        jsonrpc: int | None = None,
        http: int | None = None,
        close: CloseCode | None = None,
    ) -> None:
        super().__init_subclass__()
        if jsonrpc is not None:
            cls.jsonrpc = jsonrpc
        if http is not None:
            cls.http = http
        if close is not None:
            cls.close = close
        if code is not None:
            cls.code = code
            ERRORS[code] = cls

    def as_jsonrpc(self) -> dict[str, Any]:
        """The JSON-RPC error object: the number for machines, our code and data beside it."""
        return {
            "code": self.jsonrpc,
            "message": self.message,
            "data": {"code": self.code, **self.data},
        }

    def as_http(self) -> dict[str, Any]:
        """The JSON body of the HTTP answer with status `http`."""
        return {"error": {"code": self.code, "message": self.message, **self.data}}


ERRORS: dict[str, type[FolkmootError]] = {}
"""Every leaf of the tree by its code: the table the reference page is made from."""
