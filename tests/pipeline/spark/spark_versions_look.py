"""What a user of any Spark does: reads of a topic by time, from the broker and its files, as a stream, and a write; what came, as JSON.

spark_versions_look.py BOOTSTRAP DATA_FOLDER CHECKPOINT
"""

import json
import sys

import pyspark

from horolog import pipeline
from horolog.pipeline.spark.spark_versions import number_of

BASE = "2023-11-14T22:13:20Z"


def rows_of(frame):
    found = frame.selectExpr("partition", "offset", "unix_millis(timestamp)", "string(key)", "string(value)").collect()
    return sorted(tuple(row) for row in found)


def main(bootstrap, folder, checkpoint):
    spark = pipeline.session("local[2]", quick=True, **{"spark.log.level": "ERROR"})
    broker = {"kafka.bootstrap.servers": bootstrap}
    said = {"version": pyspark.__version__}

    def read(**options):
        return spark.read.format("horolog").options(**broker, subscribe="t", **options)

    whole = read().load()
    said["broker"] = rows_of(whole)
    said["files"] = rows_of(spark.read.format("horolog").option("subscribe", "t").load(folder))
    said["range"] = rows_of(
        read(startingTimestamp="2023-11-14T22:13:30Z", endingTimestamp="2023-11-14T22:13:40Z").load()
    )
    said["filtered"] = rows_of(whole.where("offset >= 5 and partition = 1 and timestamp >= '2023-11-14 22:13:30'"))
    said["headers"] = read(includeHeaders="true").load().where("headers is not null").count()
    typed = read(**{"value.format": "string"}).load()
    said["typed"] = [typed.schema["value"].dataType.simpleString(), typed.where("value is not null").count()]
    whole.limit(2).collect()

    def streamed(**options):
        stream = spark.readStream.format("horolog").options(
            **broker, subscribe="t", startingOffsets="earliest", **options
        )
        query = (
            stream.load().writeStream.format("parquet").option("path", f"{checkpoint}-rows").outputMode("append")
            .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        return rows_of(spark.read.parquet(f"{checkpoint}-rows"))

    said["stream"] = streamed()
    new = spark.range(7).selectExpr("string(id) as key", "concat('new ', id) as value", "0 as partition")
    new.write.format("horolog").options(**broker, topic="t").mode("append").save()
    said["more"] = len(streamed())
    if number_of(pyspark.__version__) < (4, 2):
        try:
            streamed(maxOffsetsPerTrigger=5)
        except Exception as error:  # noqa: BLE001 - whichever Spark raises
            said["limits"] = str(error)
    print(json.dumps(said))
    spark.stop()


main(*sys.argv[1:])
