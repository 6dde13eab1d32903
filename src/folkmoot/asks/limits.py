"""Bounds of asks."""

from typing import Final

MAX_TOOL: Final = 256
MAX_ARGUMENTS_BYTES: Final = 64 * 1024
MAX_WHY: Final = 2_000
MAX_REASON: Final = 2_000
MIN_SECONDS: Final = 10
MAX_SECONDS: Final = 7 * 86_400
DEFAULT_SECONDS: Final = 3_600
MAX_OPEN: Final = 100
"""Open asks of one account."""
MAX_WAITING: Final = 1_000
"""Open asks that wait for one account."""
MIN_LASTING_SECONDS: Final = 60
MAX_LASTING_SECONDS: Final = 30 * 86_400
MAX_LASTING: Final = 200
"""Approvals of one account that last."""
MAX_RECEIPT: Final = 16_384
MAX_RESULT_BYTES: Final = 1_048_576
"""What is kept of a tool's answer that nobody may be waiting for any more."""
