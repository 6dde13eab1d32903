"""The limits of `gateway`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_AUDITED_ARGUMENTS: Final = 16 * 1024
"""Bytes of arguments that the audit log has as they are; longer ones are hashed."""
MAX_NAMES_COMPARED: Final = 1_000
"""Names that an unknown name is compared with at a glance."""
MAX_NAMES_CLOSE: Final = 10
"""Names that an unknown name is compared with closely."""
MAX_UNKNOWN_NAME: Final = 128
"""Characters of an unknown name for which similar names are looked up."""
MAX_DEFINITION_BYTES: Final = 256 * 1024
"""Size of one definition; a larger one is not shown."""
MAX_DEFINITION_TEXT: Final = 64 * 1024
"""Characters of one text of a definition; a longer one is cut."""
MAX_INSTRUCTIONS: Final = 2_000
"""Characters of the instructions of one backend; the rest is cut off."""
MAX_ALL_INSTRUCTIONS: Final = 8_000
"""Characters of all instructions that one client gets; each backend has its share."""
MAX_GRANTS: Final = 100_000
"""Grants on one hub: all of them are in memory. Groups in the settings have no such limit."""
MAX_GRANTS_PAGE: Final = 1_000
"""People on one page of grants."""
MAX_ACCESS_PAGE: Final = 200
"""Handles whose rights to a server are looked at for one answer."""
MAX_TOOLS_NAMED: Final = 20
"""Tools that are named of those that someone can call."""
HISTORY_MINUTES: Final = 60
"""Minutes of calls that are kept; the present minute replaces the oldest."""
MAX_LATEST_ANSWERS: Final = 128
"""Answers that the median time is of."""
MAX_LIST_CURSOR: Final = 4_096
"""Characters of a cursor of a list."""
MAX_LIST_PAGE: Final = 1_000
"""Entries on one page of a list."""
MAX_LIST_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Size of all entries on a page, unless it is one alone."""
MAX_CACHED_LISTS: Final = 256
"""Lists that are kept ready, one for each set of rights."""
MAX_CACHED_LIST_BYTES: Final = 64 * 1024 * 1024
"""Size of all lists that are kept ready; the least recently used goes first."""
LIST_ENTRY_BYTES: Final = 128
"""What keeping the order of a list takes for each entry that is not on its first page."""
MAX_SERVER_NAME: Final = 256
"""Characters of a server's own name for a tool or prompt."""
MAX_URI_ESCAPES: Final = 3
"""How often escapes within escapes of a URI are read."""
MAX_FAULTS: Final = 100
"""Faults of one backend that are listed."""
MAX_PINS: Final = 20_000
"""Pinned tools of one backend; further tools of it are not shown."""
PINS_RETRY_SECONDS: Final = 5.0
"""How long until pins are read again that the database did not give."""
MAX_PINNED_CHARACTERS: Final = 64 * 1024 * 1024
"""Characters of all kept definitions of one backend; beyond, new tools stay held back."""
MAX_LINES_COMPARED: Final = 2_000
"""Lines of a definition that are compared with the pinned one."""
MAX_DIFF_LINES: Final = 500
"""Lines of a difference that are shown."""
MAX_ENTRIES_IN_LOOP: Final = 500
"""Entries that are processed in the event loop, in some 10 ms; more are in a thread."""
MAX_TOOLS_LOGGED: Final = 10
"""Changed tools that one line of the log names."""
MAX_HANDLES_IN_QUERY: Final = 500
"""Handles that are looked up with one statement."""
MAX_REQUEST_STATE: Final = 256 * 1024
"""Characters of the state that a backend gives with a question."""
MAX_NAME_SHOWN: Final = 120
"""Characters of a caller's text that an error repeats."""
MAX_CACHED_SCHEMAS: Final = 4_096
"""Schemas of tools that are kept compiled."""
MAX_CONTENT_DEPTH: Final = 8
"""How deep contents within contents of a result are followed."""
MAX_CACHED_RIGHTS: Final = 10_000
"""Sets of rights that are kept ready; with more, all are made again as people call."""
TASK_RESULT_SECONDS: Final = 3600.0
"""How long a caller may wait for the result of a task in one request."""
TASK_STATUS_SECONDS: Final = 10.0
"""How long a backend may take to report a task's status to the hub itself."""
TASK_STATUS_EVERY_SECONDS: Final = 5.0
"""How often at most the tasks of someone who has too many are checked."""
MIN_TASK_ID: Final = 8
"""Characters from which on a backend's own task id is replaced in its texts."""
MAX_OWN_TASK_ID: Final = 1_024
"""Characters of a backend's own id of a task; a task with a longer one is refused."""
MAX_TASK_ID: Final = 4_096
"""Characters of the id of a task."""
MAX_OPEN_TASKS: Final = 64
"""Unfinished tasks of one account."""
MAX_TASKS_OF_ACCOUNT: Final = 256
"""Tasks of one account that are listed; the oldest finished ones are left out first."""
MAX_TASKS: Final = 16_384
"""Tasks of all accounts that are listed."""
MAX_TASK_SECONDS: Final = 24 * 3600.0
"""How long a task is listed and counted, however long its backend keeps it."""
MAX_TASK_ARGUMENTS: Final = 16 * 1024
"""Bytes of a call's arguments that are kept to check again whether they are allowed."""
MAX_TASKS_PAGE: Final = 32
"""Tasks on one page of a list; the backend is asked about each."""
MAX_TRIAL_TEXT: Final = 200
"""Characters of a server's texts in the report of a test."""
