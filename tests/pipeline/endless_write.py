"""A driver for the tests that kill it: it writes batches in transactions until a file says stop, and goes on where it was killed.

python -m tests.pipeline.endless_write frames|stream ADDRESS SOURCE TOPIC NAME FOLDER
"""

import sys
import time
from pathlib import Path

ROWS = 400
"""Of a batch of data frames; row n of batch b is the text "b-n"."""
TASKS = 3
MASTER = "local[2,4]"  # a task whose worker dies is run again
STOP, DONE = "stop", "done"


def main(kind, address, source, topic, name, folder):
    from horolog import pipeline

    quick = {"spark.sql.shuffle.partitions": 2, "spark.sql.execution.arrow.maxRecordsPerBatch": 50}
    spark = pipeline.session(MASTER, "endless", quick=True, **quick)
    broker = {"kafka.bootstrap.servers": address, "kafka.max.block.ms": "20000"}
    options = broker | {"topic": topic, "transactional": "true", "transactionalId": name}
    {"frames": write_frames, "stream": write_stream}[kind](spark, options, broker, source, Path(folder))
    spark.stop()


def write_frames(spark, options, _broker, _source, folder):
    """Each batch is noted when it is done, so the last one comes again after a kill."""
    stopped = False
    while not stopped:
        stopped = (folder / STOP).exists()  # a batch that a kill has interrupted is finished in any case
        done = folder / DONE
        batch = int(done.read_text() or 0) if done.exists() else 0
        rows = spark.range(0, ROWS, 1, TASKS).selectExpr(
            f"concat('{batch}-', id) as value", "cast(id % 7 as string) as key"
        )
        rows.write.format("horolog").options(**options, batchId=str(batch)).mode("append").save()
        fresh = folder / "fresh"
        fresh.write_text(str(batch + 1))
        fresh.rename(done)


def write_stream(spark, options, broker, source, folder):
    reader = spark.readStream.format("horolog").options(**broker, subscribe=source, startingOffsets="earliest")
    reader = reader.options(
        maxOffsetsPerTrigger="300", includeHeaders="true", **{"kafka.isolation.level": "read_committed"}
    )
    writer = reader.load().writeStream.format("horolog").options(**options)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    while not (folder / STOP).exists():
        query.awaitTermination(0.2)
    while not query.awaitTermination(0.2) and query.status["isDataAvailable"]:
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
