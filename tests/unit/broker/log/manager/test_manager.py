"""All partitions of a broker over its data folders: made, opened again, deleted, expired, synced, closed."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.config.settings import load
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import LogManager
from horolog.broker.log.manager.data_folders import FOLDER_LOOK_S
from horolog.broker.log.partition import closing, log_start
from horolog.broker.log.storage import DataFolderError, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_model import NEW, NOW_MS, encode, small_config

A, B = "/disks/a", "/disks/b"
CONFIG = small_config()
TOPIC_ID = bytes(range(16))


class Machine:
    def __init__(self):
        self.storage = MemoryStorage()
        self.clock = ManualClock(NOW_MS)

    def start(self, *folders, config=CONFIG, **flags):
        settings = load(None, {}, {key.replace("_", "."): value for key, value in flags.items()})[0]
        logs = LogManager(list(folders or (A, B)), self.storage, self.clock, settings)
        logs.open(lambda _: config)
        return logs

    def lose(self, folder):
        for operation in ("list", "read", "open", "create", "write", "make", "rename"):
            self.storage.fail(operation, folder, times=ALL)

    def look(self, logs, times=20):
        """Let the manager look after what has failed; what it has back."""
        found = []
        for _ in range(times):
            self.clock.advance(int(FOLDER_LOOK_S * 1000) + 1)
            reopened, jobs = logs.retry_stopped()
            found += reopened
            for job in jobs:
                job()
        return found


@pytest.fixture
def machine():
    return Machine()


def append(partition, timestamp=5):
    partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    partition.flush()


def id_of(logs, number):
    return logs.folders[number].identity.directory_id


def test_a_manager_that_cannot_have_its_folders_lets_go_of_all(machine):
    machine.start(B)
    with pytest.raises(DataFolderError):
        machine.start(A, B)
    machine.start(A)


class TestPlaces:
    def test_a_partition_is_made_in_the_folder_that_is_on_record(self, machine):
        logs = machine.start()
        made = [logs.create("t", index, CONFIG, TOPIC_ID, id_of(logs, 1)) for index in range(2)]
        assert {one.directory.rpartition("/")[0] for one in made} == {B}
        assert logs.places_of(made) == {id_of(logs, 1): [0, 1]}
        assert logs.partition_in(f"{B}/t-1") is made[1]
        assert logs.partition_in(f"{B}/no partition") is None

    def test_one_folder_has_nothing_to_say(self, machine):
        logs = machine.start(A)
        assert logs.places_of([logs.create("t", 0, CONFIG, TOPIC_ID)]) == {}

    def test_an_id_is_written_into_a_folder_that_has_none(self, machine):
        logs = machine.start()
        partition = logs.create("t", 0, CONFIG, None)
        logs.identify(partition, TOPIC_ID)
        assert checkpoints.load_topic_id(machine.storage, partition.directory) == partition.topic_id == TOPIC_ID


class TestAPartitionThatGoesFromHandToHand:
    """As among workers that share the folders."""

    def test_is_opened_again_as_it_was_left(self, machine):
        logs = machine.start()
        partition = logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 1))
        append(partition)
        logs.forget(partition)
        closing.close_files(partition)
        assert logs.partitions == {}
        taken = logs.take_over("t", 0, CONFIG, TOPIC_ID, None, was_clean=True)
        assert taken is not partition
        assert taken is logs.partitions["t", 0]
        assert (taken.log_end_offset, taken.directory) == (1, f"{B}/t-0")

    def test_is_made_where_there_is_no_folder(self, machine):
        logs = machine.start()
        made = logs.take_over("t", 0, CONFIG, TOPIC_ID, id_of(logs, 1), was_clean=True)
        assert made is logs.partitions["t", 0]
        assert (made.log_end_offset, made.directory) == (0, f"{B}/t-0")


class TestAPartitionWithoutAFolder:
    def test_is_made(self, machine):
        logs = machine.start()
        append(logs.create_or_offline("t", 0, CONFIG, TOPIC_ID, id_of(logs, 1)))
        assert logs.partitions["t", 0].directory == f"{B}/t-0"

    def test_is_offline_where_none_can_be_made_and_back_when_one_can(self, machine):
        logs = machine.start()
        machine.storage.fail("make", "t-0", times=ALL)
        partition = logs.create_or_offline("t", 0, CONFIG, TOPIC_ID)
        assert logs.partitions["t", 0] is partition
        assert "make" in partition.condition.fault
        assert not logs.open_again(partition)
        assert "make" in partition.condition.fault
        machine.storage.heal()
        assert machine.look(logs, 2) == [partition]
        assert logs.partitions["t", 0] is partition
        assert partition.condition.takes_appends
        append(partition)
        partition.sync()
        machine.storage.crash()
        found = machine.start().partitions["t", 0]
        assert (found.high_watermark, found.topic_id) == (1, TOPIC_ID)

    def test_that_could_not_be_made_is_deleted_and_there_is_nothing_to_be_removed(self, machine):
        logs = machine.start()
        machine.storage.fail("make", "t-0", times=ALL)
        partition = logs.create_or_offline("t", 0, CONFIG, TOPIC_ID)
        logs.delete(partition)
        assert partition.condition.is_deleted
        assert logs.partitions == {}

    def test_that_could_not_be_made_is_not_the_one_that_is_there_now(self, machine):
        logs = machine.start()
        machine.storage.fail("make", "t-0")
        gone = logs.create_or_offline("t", 0, CONFIG, TOPIC_ID)
        made = logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 0 if gone.directory.startswith(A) else 1))
        assert made.directory == gone.directory
        logs.delete(made)
        assert not machine.storage.is_dir(made.directory)

    def test_that_was_made_at_last_is_deleted_with_its_folder(self, machine):
        logs = machine.start()
        machine.storage.fail("make", "t-0")
        partition = logs.create_or_offline("t", 0, CONFIG, TOPIC_ID)
        assert machine.look(logs, 2) == [partition]
        logs.delete(partition)
        assert logs.partitions == {}
        assert not machine.storage.is_dir(partition.directory)

    def test_is_offline_and_not_made_anew_where_its_folder_is_away(self, machine, caplog):
        logs = machine.start()
        logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 1))
        place = id_of(logs, 1)
        logs.close()
        machine.lose(B)
        logs = machine.start()
        partition = logs.create_or_offline("t", 0, CONFIG, TOPIC_ID, place)
        assert "is unavailable" in partition.condition.fault
        assert logs.places_of([partition]) == {place: [0]}
        assert not machine.storage.exists(f"{A}/t-0")
        assert not logs.open_again(partition), "its folder comes back first"


class TestAFolderThatIsAway:
    @pytest.fixture
    def away(self, machine):
        """Partition 0 is in the folder that works, 1 in the one that does not."""
        logs = machine.start()
        places = [id_of(logs, number) for number in range(2)]
        for index in range(2):
            append(logs.create("t", index, CONFIG, TOPIC_ID, places[index]))
        logs.partitions["t", 1].sync()
        logs.close()
        machine.lose(B)
        logs = machine.start()
        logs.create_or_offline("t", 1, CONFIG, TOPIC_ID, places[1])
        return logs

    def test_its_partitions_are_back_with_it(self, machine, away):
        partition = away.partitions["t", 1]
        assert machine.look(away, 1) == []
        machine.storage.heal()
        assert machine.look(away) == [partition]
        assert (partition.high_watermark, partition.condition.takes_appends) == (1, True)
        assert away.places_of([partition]) == {id_of(away, 1): [1]}

    def test_a_partition_that_is_deleted_meanwhile_is_told_to_be_left(self, machine, away):
        with pytest.raises(StorageFault, match="is unavailable"):
            away.delete(away.partitions["t", 1])
        assert set(away.partitions) == {("t", 0)}
        machine.storage.heal()
        machine.look(away)
        assert machine.storage.is_dir(f"{B}/t-1")

    def test_the_rest_goes_on_and_is_closed_cleanly(self, machine, away):
        append(away.partitions["t", 0])
        away.close()
        machine.storage.heal()
        assert machine.storage.exists(f"{A}/{checkpoints.CLEAN_SHUTDOWN}")
        assert machine.start().partitions["t", 0].high_watermark == 2


class TestOpeningAgain:
    def test_an_offline_partition_stays_so_until_it_can_be_read(self, machine):
        logs = machine.start()
        append(logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 0)))
        logs.abandon()
        machine.storage.fail("read", "t-0/", times=ALL)
        logs = machine.start()
        partition = logs.partitions["t", 0]
        assert not logs.open_again(partition)
        assert partition.condition.fault
        machine.storage.heal()
        assert logs.open_again(partition)
        assert (partition.condition.fault, partition.high_watermark) == (None, 1)

    def test_one_in_memory_is_served_until_the_disk_takes_it(self, machine, caplog):
        logs = machine.start()
        append(logs.create("t", 0, CONFIG, TOPIC_ID, id_of(logs, 0)))
        logs.abandon()
        machine.storage.unwritable["t-0"] = 28
        logs = machine.start()
        partition = logs.partitions["t", 0]
        assert (partition.condition.fault, partition.condition.takes_appends) == (None, False)
        assert not logs.open_again(partition)
        assert "still kept in memory" in caplog.text
        assert (partition.condition.fault, partition.high_watermark) == (None, 1)
        machine.storage.heal()
        assert machine.look(logs) == [partition]
        append(partition)

    def test_the_time_of_producers_reaches_partitions_that_are_here_and_to_come(self, machine):
        logs = machine.start()
        first = logs.create("t", 0, CONFIG, TOPIC_ID)
        logs.expire_producers_after(77)
        logs.expire_producers_after(77)
        assert first.producers.expiration_ms == logs.resources.producer_expiration_ms == 77
        assert logs.create("t", 1, CONFIG, TOPIC_ID).producers.expiration_ms == 77


class TestRetention:
    def test_only_partitions_whose_start_has_moved_are_told(self, machine):
        logs = machine.start()
        config = small_config(retention_ms=1000)
        old, fresh, offline = (logs.create("t", index, config, TOPIC_ID) for index in range(3))
        append(old)
        append(fresh, NOW_MS)
        append(offline)
        offline.condition.go_offline("no disk")
        assert logs.apply_retention(NOW_MS) == [old]
        assert logs.finish_retention(NOW_MS) == []

    def test_a_partition_whose_files_cannot_be_touched_costs_itself_only(self, machine, caplog):
        logs = machine.start()
        config = small_config(retention_ms=1000)
        failing, fine = (logs.create("t", index, config, TOPIC_ID) for index in range(2))
        append(failing)
        append(fine)
        machine.storage.fail("create", "t-0/", times=ALL)
        assert logs.apply_retention(NOW_MS) == [fine]
        assert "retention failed" in caplog.text


class TestCheckpoints:
    def test_a_folder_that_takes_none_does_not_keep_the_others_from_theirs(self, machine):
        logs = machine.start()
        for index in range(2):
            append(logs.create("t", index, CONFIG, TOPIC_ID, id_of(logs, index)))
        machine.storage.fail("create", f"{A}/", times=ALL)
        with pytest.raises(StorageFault):
            logs.checkpoint_job()()
        path = f"{B}/{checkpoints.HIGH_WATERMARKS}"
        assert checkpoints.load_offsets(machine.storage, path).offsets == {("t", 1): 1}

    def test_starts_that_could_not_be_written_are_named_by_partition(self, machine, caplog):
        logs = machine.start()
        for index in range(2):
            append(logs.create("t", index, CONFIG, TOPIC_ID, id_of(logs, index)))
            append(logs.partitions["t", index])
            log_start.delete_records_before(logs.partitions["t", index], 1)
        machine.storage.fail("create", f"{B}/", times=ALL)
        assert logs.write_log_starts() == {("t", 1)}


class TestTheEnd:
    def test_a_partition_that_cannot_be_closed_makes_its_folder_unclean_alone(self, machine, caplog):
        logs = machine.start()
        for index in range(2):
            append(logs.create("t", index, CONFIG, TOPIC_ID, id_of(logs, index)))
        machine.storage.fail("sync", "t-1/", times=ALL)
        logs.close()
        assert "could not be closed cleanly" in caplog.text
        marks = [machine.storage.exists(f"{one}/{checkpoints.CLEAN_SHUTDOWN}") for one in (A, B)]
        assert marks == [True, False]

    def test_a_forgotten_partition_keeps_its_files(self, machine):
        logs = machine.start()
        partition = logs.create("t", 0, CONFIG, TOPIC_ID)
        logs.forget(partition)
        assert logs.partitions == {}
        assert machine.storage.is_dir(partition.directory)

    def test_what_is_out_of_use_is_removed_by_jobs(self, machine):
        logs = machine.start()
        partition = logs.create("t", 0, small_config(file_delete_delay_ms=5), TOPIC_ID)
        append(partition)
        logs.delete(partition)
        assert logs.removal_jobs(NOW_MS) == []
        for job in logs.removal_jobs(NOW_MS + 5):
            job()
        assert not [name for name in machine.storage.list_dir(A) if name.startswith("t-0")]
        assert repr(logs).startswith("<LogManager of [<DataFolder /disks/a: 0 partitions>")

    def test_what_a_deletion_left_may_be_removed_later_and_a_folder_that_stays_keeps_no_other(self, machine, caplog):
        logs = machine.start()
        for name in ("t-0.a-delete", "t-1.b-delete"):
            machine.storage.make_dir(f"{A}/{name}")
        logs.folders[0].find_deleted(5000)
        assert logs.removal_jobs(NOW_MS + 4999) == []
        (job,) = logs.removal_jobs(NOW_MS + 5000)
        machine.storage.fail("remove", "t-0.a-delete")
        job()
        assert [one for one in machine.storage.list_dir(A) if one.endswith("-delete")] == ["t-0.a-delete"]
        assert "t-0.a-delete is deleted, but its files cannot be removed" in caplog.text
