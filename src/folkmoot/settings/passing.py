"""The settings of what is done with messages as they pass: recording and interceptors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from folkmoot.settings.section import FilePath, OptionalFolder, Section


class RecordSettings(Section, frozen=True, kw_only=True):
    """Recording of what is said at `/mcp`, on tapes."""

    folder: Annotated[
        OptionalFolder,
        Meta(
            description="Where tapes are written; nothing is recorded while it is empty. A "
            "relative path is taken from the working directory."
        ),
    ] = ""
    best_effort: Annotated[
        bool,
        Meta(
            description="Whether the hub goes on when a tape cannot be written; otherwise `/mcp` "
            "answers with 503 until it is restarted."
        ),
    ] = False
    compress: Annotated[
        bool,
        Meta(description="Whether tapes are compressed with zstd; this needs the extra `zstd`."),
    ] = False
    tape_bytes: Annotated[
        int,
        Meta(
            ge=65_536,
            le=1_099_511_627_776,
            description="How long a tape may become, in bytes, before the next one is begun.",
        ),
    ] = 268_435_456
    redact: Annotated[
        tuple[Annotated[str, Meta(max_length=256)], ...],
        Meta(
            max_length=256,
            description="Paths that are kept off tapes besides secrets and mail, such as "
            '"$.params.arguments.ssn".',
        ),
    ] = ()


class InterceptorSettings(Section, frozen=True, kw_only=True):
    """Interceptors, which see each message at `/mcp` and in rooms before policy does."""

    rules: Annotated[
        FilePath,
        Meta(
            description="A file of rules. It is read again when it changes; one that cannot be "
            "used changes nothing, and the log says why."
        ),
    ] = ""
    plugins: Annotated[
        tuple[Annotated[str, Meta(max_length=128)], ...],
        Meta(
            max_length=32,
            description="Interceptors written in Python, by the names of their entry points in "
            "`folkmoot.interceptors`, in the order they see messages, after the rules.",
        ),
    ] = ()
