"""What keeps a hub, or a part of it, from doing its work."""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import FolkmootError


class SettingsError(FolkmootError, code="settings_invalid"):
    """The configuration cannot be used; the message names file, line and setting."""


class StoreError(FolkmootError, http=503):
    """The database cannot do what it was asked."""


class DatabaseVersion(StoreError, code="database_version"):
    """The database was written by another version of Folkmoot, so this one does not open it."""


class DatabaseCorrupt(StoreError, code="database_corrupt"):
    """The file is not a database, or its integrity check failed."""


class DatabaseDamaged(StoreError, code="database_damaged"):
    """The database is damaged: nothing is written until it is restored and the hub restarted."""


class DatabaseLocked(StoreError, code="database_locked"):
    """Another program holds the database for longer than we wait."""


class DatabaseUnwritable(StoreError, code="database_unwritable"):
    """The database cannot be opened or written with the rights this program has."""


class DatabaseUnreachable(StoreError, code="database_unreachable"):
    """The database server cannot be reached, or the connection to it was lost."""


class DatabaseTooOld(StoreError, code="database_too_old"):
    """The database server's version or encoding is not one that this program works with."""


class DatabaseInUse(StoreError, code="database_in_use"):
    """Another hub uses the database."""


class DatabaseFailedOver(StoreError, code="database_failed_over"):
    """Another server took over, which may lack what the last one acknowledged: restart the hub."""


class MigrationFailed(StoreError, code="migration_failed"):
    """A migration failed and was undone as a whole."""


class BackupFailed(StoreError, code="backup_failed"):
    """The backup could not be written; nothing was left behind."""


class RestoreFailed(StoreError, code="restore_failed"):
    """The backup cannot be restored; the database that was in use is unchanged."""


class TransferFailed(StoreError, code="transfer_failed"):
    """The database could not be copied to a server; nothing was left there."""


class DiskFull(StoreError, code="disk_full", http=507):
    """The disk is full."""


class DiskFailed(StoreError, code="disk_failed"):
    """The disk failed while the database was read or written."""


class ConstraintViolated(StoreError, code="constraint_violated", http=409):
    """A statement broke a rule of the schema, such as uniqueness."""


class StatementFailed(StoreError, code="statement_failed", http=500):
    """A statement could not be run; the fault is in the program."""


class TextUnstorable(StoreError, code="text_unstorable", http=400):
    """A text contains the character NUL, which the database cannot store."""


class UnitSuspended(StoreError, code="unit_suspended", http=500):
    """A unit awaited something other than its transaction; the fault is in the program."""


class SealBroken(StoreError, code="seal_broken", http=500):
    """Something sealed cannot be opened: it was changed, or was sealed for another place."""


class StoreOverloaded(StoreError, code="store_overloaded"):
    """More writes are waiting than `store.queue` allows; try again in a moment."""


class LeaseOver(StoreError, code="lease_over"):
    """The node could not renew its lease at the database in time."""


class StoreClosed(StoreError, code="store_closed", close=CloseCode.RESTARTING):
    """The store is closing or closed."""


class BusError(FolkmootError, http=503):
    """An event cannot be carried."""


class SubjectInvalid(BusError, code="subject_invalid", http=500):
    """A subject or pattern is not made of tokens joined by dots."""


class EventUnencodable(BusError, code="event_unencodable", http=500):
    """An event cannot be written as JSON."""


class EventTooLarge(BusError, code="event_too_large"):
    """An event has more bytes than the bus carries."""


class BusUnreachable(BusError, code="bus_unreachable"):
    """No NATS server can be used."""


class BusClosed(BusError, code="bus_closed", close=CloseCode.RESTARTING):
    """The bus is closing or closed."""


class DataFolderError(FolkmootError):
    """The data folder cannot be used."""


class DataFolderUnwritable(DataFolderError, code="data_folder_unwritable"):
    """The data folder cannot be made or written."""


class DataFolderInUse(DataFolderError, code="data_folder_in_use"):
    """Another hub is running on this data folder."""


class KeyUnusable(DataFolderError, code="key_unusable"):
    """The master key is missing beside an existing database, malformed, or readable by others."""


class KeyMismatch(DataFolderError, code="key_mismatch"):
    """The master key is not the one that opens this database."""


class ServeError(FolkmootError):
    """The hub cannot listen."""


class PortTaken(ServeError, code="port_taken"):
    """Another program listens on the port."""


class AddressUnusable(ServeError, code="address_unusable"):
    """The host is not an address of this machine, or the port is not allowed."""


class ControlError(FolkmootError):
    """An operator's command cannot be carried out."""


class HubNotRunning(ControlError, code="hub_not_running"):
    """No hub is running on the data folder."""


class CommandInvalid(ControlError, code="command_invalid", http=400):
    """An argument is not what the operator's command takes."""


class CommandFailed(ControlError, code="command_failed"):
    """The running hub could not carry the command out; the message says why."""


class ExportFailed(ControlError, code="export_failed"):
    """The export could not be written; nothing was left behind."""


class InternalError(FolkmootError, code="internal_error"):
    """The hub failed; its log has the details under the id in the answer."""
