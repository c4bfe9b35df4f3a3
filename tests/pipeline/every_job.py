"""A driver that runs every job that needs Spark on a cluster, one after the other, and prints what each said, and hashes of rows, as JSON.

python -m tests.pipeline.every_job MASTER CONF ADDRESS OTHER FOLDER

The topic "from" at ADDRESS has records of two dates. The topics "replayed", "loaded", "written" and "streamed" are filled, and "from" at
OTHER.
"""

import json
import os
import sys
import time
from pathlib import Path

from tests.pipeline.clusters import digest, shown

OLDER_THAN_MS = 1_700_092_800_000
"""The beginning of 2023-11-16: the earlier of the two dates ends before it."""
DUMPED = 90
DUMPED_FROM_MS = 1_700_000_000_000
EIGHT_DAYS = 8 * 86_400
SECONDS = 60


def main(master, conf, address, other, folder):
    from horolog import pipeline

    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    executors = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": 2}
    spark = pipeline.session(master, "every job", quick=True, **json.loads(conf), **local, **executors)
    root = Path(folder)
    said = {kind: kept(spark, address, kind, root / kind) for kind in ("parquet", "delta", "iceberg")}
    said |= {"replay": replayed(spark, address, root), "bootstrap": loaded(spark, address, root / "dump")}
    said |= {"mirror": mirrored(spark, address, other), "profile": profiled(spark, address)}
    written(spark, address)
    said["stream"] = streamed(spark, address, root / "checkpoint")
    said |= where_tasks_are(spark)
    print(json.dumps(said))
    spark.stop()


def reading(address):
    options = {"kafka.bootstrap.servers": address, "subscribe": "from", "startingOffsets": "earliest"}
    return {**options, "includeHeaders": "true", "kafka.isolation.level": "read_committed"}


def kept(spark, address, kind, folder):
    """The rows of an archive, and those that are left when the older date and a file of a dead task have gone."""
    from horolog import pipeline
    from horolog.pipeline.jobs import archive, expire, vacuum

    added = archive(spark, address, "from", str(folder), table_format=kind, step_records=400)
    had = shown(pipeline.table(spark, str(folder), table_format=kind))
    expired = expire(spark, str(folder), older_than_ms=OLDER_THAN_MS, table_format=kind)
    orphan = next(folder.rglob("*.parquet")).with_name("orphan.parquet")
    orphan.write_bytes(b"dead")
    os.utime(orphan, (time.time() - EIGHT_DAYS,) * 2)
    vacuumed = vacuum(spark, str(folder), table_format=kind)
    left = shown(pipeline.table(spark, str(folder), table_format=kind))
    again = archive(spark, address, "from", str(folder), table_format=kind)
    return {
        "added": added.records,
        "had": digest(had),
        "expired": expired.records,
        "vacuumed": vacuumed.details["files"],
        "orphan is there": orphan.exists(),
        "left": digest(left),
        "again": again.records,
    }


def replayed(spark, address, root):
    from horolog.pipeline.jobs import Settings, archive, replay

    source = str(root / "replayed")
    archive(spark, address, "from", source, table_format="delta")
    return replay(spark, address, source, "replayed", settings=Settings(exactly_once=True)).records


def loaded(spark, address, dump):
    from horolog.pipeline.jobs import bootstrap

    created = f"timestamp_millis({DUMPED_FROM_MS} + id * 1000) as created"
    spark.range(0, DUMPED, 1, 3).selectExpr("id", "'row' as name", created).write.parquet(str(dump))
    return bootstrap(spark, address, str(dump), "loaded", time_column="created", key_column="id").records


def mirrored(spark, address, other):
    from horolog.pipeline.jobs import mirror

    return mirror(spark, address, other, "from", step_records=150).records


def profiled(spark, address):
    from horolog.pipeline.jobs import profile

    found = profile(spark, "from", {"kafka.bootstrap.servers": address})
    return [[each.partition, each.records, each.late] for each in found.partitions]


def written(spark, address):
    frame = spark.read.format("horolog").options(**reading(address)).load()
    target = {"kafka.bootstrap.servers": address, "topic": "written", "transactional": "true"}
    frame.write.format("horolog").options(**target).mode("append").save()


def streamed(spark, address, checkpoint):
    """How many batches."""
    stream = spark.readStream.format("horolog").options(**reading(address), maxOffsetsPerTrigger="250").load()
    target = {"kafka.bootstrap.servers": address, "topic": "streamed", "checkpointLocation": str(checkpoint)}
    target |= {"transactional": "true", "transactionalId": "streamed"}
    query = stream.writeStream.format("horolog").options(**target).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    return len(query.recentProgress)


def where_tasks_are(spark):
    """The folders of the executors that took part, and the Python and the package that they ran."""

    def where(batches):
        import pyarrow as pa

        from horolog import pipeline

        for batch in batches:
            found = {"executor": str(Path.cwd()), "package": f"{sys.prefix} {pipeline.__file__}"}
            yield pa.RecordBatch.from_pylist([found] * min(1, batch.num_rows))

    rows = spark.range(0, 8, 1, 8).mapInArrow(where, "executor string, package string").collect()
    return {"executors": sorted({row.executor for row in rows}), "packages": sorted({row.package for row in rows})}


if __name__ == "__main__":
    main(*sys.argv[1:])
