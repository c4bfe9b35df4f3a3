"""The settings of a broker's backup into an object store. `broker.config.settings` has the rest."""

from dataclasses import dataclass

from horolog.broker.config.setting_types import long, string
from horolog.broker.config.store_settings import SharedStoreSettings, wrong_endpoint


@dataclass(frozen=True, slots=True, repr=False)
class BackupSettings(SharedStoreSettings):
    horolog_backup_store: str | None = string(
        None,
        "The URL to which the broker copies its data folders while it runs: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER. Empty: no"
        " backup. Credentials come from the environment or the platform.",
        nullable=True,
    )
    horolog_backup_store_endpoint: str | None = string(
        None,
        "The URL of an S3 server for the backup other than Amazon's, http://HOST:PORT.",
        nullable=True,
        check=wrong_endpoint,
    )
    horolog_backup_ms: int = long(
        60_000, "Time from one moment of the backup to the next. A restore loses at most newer records.", low=1_000
    )
    horolog_backup_history_ms: int = long(
        7 * 86_400_000,
        "Time for which moments of the backup are kept: all of the last hour, then one in ten minutes for a day, then one an hour.",
        low=0,
    )
    horolog_backup_bytes_per_second: int = long(
        50 * 2**20, "Maximum bytes that the backup ships each second. 0: no limit.", low=0
    )
