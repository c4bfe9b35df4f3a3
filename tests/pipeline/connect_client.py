"""What a client of Spark Connect does with topics, in a process of its own: `python connect_client.py BOOTSTRAP FOLDER`.

It writes, reads, streams and asks by SQL, also in a second thread, and prints a line of JSON for each.
"""

import json
import os
import sys
import threading

from pyspark.sql import SparkSession

from horolog.pipeline import activate, catalogue
from horolog.pipeline.spark.java import java_home

COUNT = 50


def main(bootstrap: str, folder: str) -> None:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    home = java_home(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    settings = {
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.warehouse.dir": folder,
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    broker = {"kafka.bootstrap.servers": bootstrap}

    def say(name: str, value: object) -> None:
        sys.stdout.write(json.dumps({name: value}) + "\n")

    def write(topic: str) -> None:
        rows = spark.range(COUNT).selectExpr("cast(id AS string) AS value").coalesce(1)
        rows.write.format("horolog").options(**broker, topic=topic, createTopics="true").mode("append").save()

    def read(topic: str) -> int:
        return int(spark.read.format("horolog").options(**broker, subscribe=topic).load().count())

    def in_a_thread() -> None:
        activate(spark)
        write("shop")
        say("thread", read("shop"))

    write("shop")
    say("first", read("shop"))
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    stream = spark.readStream.format("horolog").options(**broker, subscribe="shop", startingOffsets="earliest").load()
    query = (
        stream.select("value")
        .writeStream.format("horolog")
        .options(**broker, topic="copy", createTopics="true", checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    say("stream", read("copy"))
    say("behind", json.loads(query.lastProgress["sources"][0]["latestOffset"])["is behind"])
    catalogue(spark, "log", bootstrap)
    say("tables", [row.tableName for row in spark.sql("SHOW TABLES IN log").collect()])
    say("sql", spark.sql("SELECT count(*) AS n FROM log.shop WHERE offset >= 10").collect()[0].n)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
