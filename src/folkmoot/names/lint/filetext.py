"""A file's text as it can be written back: its encoding, its mark, its line ends, its offsets."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.names.lint.model import Place, Span

if TYPE_CHECKING:
    import ast

MOST_BYTES: Final = 2_097_152
"""A source that is larger was written by a program, and is not read."""
LINE: Final = re.compile(r"\r\n?|\n")


class Unreadable(Exception):
    """The file cannot be used; the message is one clear sentence."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class FileText(Struct, kw_only=True):
    """The text of one file, with where each of its lines begins."""

    path: str
    """As in `Place`."""
    text: str
    encoding: str = "utf-8"
    marked: bool = False
    """Whether the file begins with the byte order mark of UTF-8."""
    starts: list[int]

    def offset(self, line: int, column: int) -> int:
        """Where a syntax tree's position is in the text; its columns are bytes of UTF-8."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        text = self.text[start:end]
        if text.isascii():
            return start + column
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """The text of a node."""
        start = self.offset(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return Span(start, start)
        return Span(start, self.offset(node.end_lineno, node.end_col_offset))

    def place(self, span: Span) -> Place:
        """Where a span is, as people count."""
        line, column = self.position(span.start)
        end_line, end_column = self.position(span.end)
        return Place(self.path, line, column, end_line, end_column)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, from 1 on."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def slice(self, span: Span) -> str:
        """What stands there."""
        return self.text[span.start : span.end]


def make_text(path: str, text: str) -> FileText:
    """A text as that of a file in UTF-8."""
    starts = [0, *(found.end() for found in LINE.finditer(text))]
    return FileText(path=path, text=text, starts=starts)


def decode(path: str, raw: bytes, *, declared: bool = True) -> FileText:
    """The text of a file, in the encoding that it declares as Python sources do, if they may."""
    encoding = "utf-8"
    if declared and b"\0" in raw:
        # Later Pythons say so while they look for the encoding, earlier ones while they parse.
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise Unreadable("It is not Python: source code cannot contain null bytes.", line)
    try:
        if declared:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    except (SyntaxError, LookupError):
        raise Unreadable("It is neither UTF-8 nor in an encoding that it declares.") from None
    marked = raw.startswith(BOM_UTF8)
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    try:
        text = raw.removeprefix(BOM_UTF8).decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise Unreadable(f"It is not {name} text.", line) from None
    except LookupError:
        raise Unreadable(f"It declares an encoding of bytes, {encoding}.") from None
    made = make_text(path, text)
    made.encoding, made.marked = encoding, marked
    return made


def read(file: Path, path: str) -> FileText:
    """The text of a file, if it is of a size that people write."""
    return decode(path, read_bytes(file), declared=path.endswith((".py", ".pyw")))


def read_bytes(file: Path) -> bytes:
    """The bytes of a file; raises `Unreadable`."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise Unreadable(f"It cannot be read: {reason.lower()}.") from None
    if len(raw) > MOST_BYTES:
        raise Unreadable("It is larger than 2 MiB, and was not read.")
    return raw
