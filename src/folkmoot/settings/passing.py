"""The settings of what is done with messages as they pass: recording and interceptors."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from folkmoot.settings.section import FilePath, OptionalFolder, Section

ProxiesShown: TypeAlias = Literal["this_machine", "operators", "nobody"]


class RecordSettings(Section, frozen=True, kw_only=True):
    """Recording of what is said at `/mcp`, on tapes."""

    folder: Annotated[
        OptionalFolder,
        Meta(
            description="Where tapes are written; nothing is recorded while it is empty. A "
            "relative path is relative to the working directory."
        ),
    ] = ""
    best_effort: Annotated[
        bool,
        Meta(
            description="Whether the hub keeps serving when a tape cannot be written; "
            "otherwise `/mcp` answers with 503 until it is restarted."
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
            description="The size in bytes at which the next tape is started.",
        ),
    ] = 268_435_456
    redact: Annotated[
        tuple[Annotated[str, Meta(max_length=256)], ...],
        Meta(
            max_length=256,
            description="Paths that are redacted on tapes in addition to secrets and mail, "
            'such as "$.params.arguments.ssn".',
        ),
    ] = ()


class InterceptorSettings(Section, frozen=True, kw_only=True):
    """Interceptors, which see each message at `/mcp` and in rooms before policy does."""

    rules: Annotated[
        FilePath,
        Meta(
            description="A file of rules. It is reloaded when it changes; an invalid file "
            "changes nothing, and the log says why."
        ),
    ] = ""
    plugins: Annotated[
        tuple[Annotated[str, Meta(max_length=128)], ...],
        Meta(
            max_length=32,
            description="Interceptors written in Python, by the names of their entry points in "
            "`folkmoot.interceptors`, in the order in which they are applied, "
            "after the rules.",
        ),
    ] = ()
    local_proxies: Annotated[
        ProxiesShown,
        Meta(
            description="Which operators see the tapes and the held messages of the proxies that "
            "the hub's own user runs on the hub's machine, and may decide about them. "
            "this_machine: operators whose requests are made on that machine, while the hub has "
            "neither `public_url` nor `http.trusted_proxies`. operators: every operator. nobody: "
            "they are not looked for."
        ),
    ] = "this_machine"
