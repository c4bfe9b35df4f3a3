"""Reads and changes users and access rules in data folders that no broker runs on, even before the first start."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from horolog.broker.cluster.cluster_start import load_record
from horolog.broker.cluster.cluster_state import RulesChanged, plain_leads
from horolog.broker.cluster.left_folders import as_left, merge_what_workers_left
from horolog.broker.cluster.settling import state_of
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load
from horolog.broker.log.storage import (
    LOCK_FILE,
    FolderInUse,
    ReadOnlyStorage,
    RealStorage,
    Storage,
    StorageFault,
    make_folder,
)
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL, ClusterFile, NewerClusterFile
from horolog.broker.on_record.stored_rules import Rules
from horolog.broker.security.password_encoder import NotDecoded, PasswordEncoder
from horolog.client.cli.examining.folder_check import partitions_in
from horolog.client.cli.examining.given_folders import check_given
from horolog.commands.errors import CommandError

ENVIRONMENT = "KAFKA_PASSWORD_ENCODER_SECRET"
OLD_ENVIRONMENT = "KAFKA_PASSWORD_ENCODER_OLD_SECRET"


def read(data_dirs: Sequence[str]) -> Rules:
    """The current rules of the cluster; a broker may be running. Raises CommandError."""
    storage: Storage = ReadOnlyStorage()
    check_given(storage, data_dirs)
    try:
        storage = as_left(storage, data_dirs)
        return ClusterFile(storage, data_dirs[0], lambda: data_dirs).load().rules
    except (StorageFault, NewerClusterFile) as fault:
        raise CommandError(f"{', '.join(data_dirs)}: {fault}") from fault


def read_users(data_dirs: Sequence[str], environ: Mapping[str, str]) -> Rules:
    """The same, with the secrets of users decoded."""
    rules = read(data_dirs)
    try:
        return encoder_of(environ).decoded_rules(rules)
    except NotDecoded as error:
        raise CommandError(f"{', '.join(data_dirs)}: {error}", f"set {ENVIRONMENT} to the broker's secret") from error


def encoder_of(environ: Mapping[str, str]) -> PasswordEncoder:
    """The encoder, from the variables of Kafka's images, or from systemd's credentials."""
    given = {name: text for name, text in environ.items() if name in {ENVIRONMENT, OLD_ENVIRONMENT}}
    try:
        return PasswordEncoder.of(load(None, given, {})[0], environ)
    except SettingsError as error:
        raise CommandError(str(error)) from error


def change(
    data_dirs: Sequence[str], decide: Callable[[Rules], RulesChanged], environ: Mapping[str, str] = os.environ
) -> None:
    """Change the rules, durably once it returns. Missing folders are created. Raises CommandError."""
    try:
        encoder = encoder_of(environ)
        _change(
            [one.rstrip("/") or "/" for one in data_dirs],
            lambda rules: _encoded(decide(rules), rules, encoder),
        )
    except FolderInUse as error:
        advice = "make the change while it runs: -b HOST:PORT in place of --data"
        raise CommandError(f"a broker runs on {', '.join(data_dirs)}: {error}", advice) from error
    except (StorageFault, NewerClusterFile, NotDecoded) as error:
        raise CommandError(f"{', '.join(data_dirs)}: {error}") from error


def _encoded(decided: RulesChanged, rules: Rules, encoder: PasswordEncoder) -> RulesChanged:
    return replace(decided, put=encoder.encoded_beside(decided.put, rules))


def _change(data_dirs: Sequence[str], decide: Callable[[Rules], RulesChanged]) -> None:
    """Raises FolderInUse, StorageFault, NewerClusterFile, CommandError."""
    storage = RealStorage()
    with ExitStack() as locks:
        for data_dir in data_dirs:
            make_folder(storage, data_dir)
            locks.callback(storage.lock(f"{data_dir}/{LOCK_FILE}").release)
        merge_what_workers_left(storage, data_dirs)
        file = ClusterFile(storage, data_dirs[0], lambda: data_dirs)
        stored = load_record(file, storage, data_dirs)
        if stored.damages:
            raise CommandError(
                f"{FILE_NAME} is damaged: {stored.damages[0]}", "restore a copy of it, or start a broker"
            )
        if not stored.found and any(_has_data(storage, one) for one in data_dirs):
            raise CommandError(
                f"{', '.join(data_dirs)} holds data of Kafka, or has lost {FILE_NAME}",
                "take it over first: horolog adopt DIR",
            )
        state = state_of(stored).apply(decide(stored.rules))
        state.save(file, plain_leads(state.leads))


def _has_data(storage: Storage, data_dir: str) -> bool:
    names = storage.list_dir(data_dir)
    return JOURNAL in names or bool(partitions_in(storage, data_dir)) or "__cluster_metadata-0" in names
