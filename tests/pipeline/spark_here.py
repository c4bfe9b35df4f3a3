"""What stands for Spark where a test calls the functions of tasks: they run in this process, so that their lines are measured."""

from types import SimpleNamespace

import pyarrow as pa


class Frame:
    """Batches of Arrow, and what a function in Python makes of them."""

    def __init__(self, batches):
        self.batches = list(batches)

    def mapInArrow(self, function, _schema):
        return Frame(function(iter(self.batches)))

    def collect(self):
        return [
            tuple(row)
            for batch in self.batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]


class Here:
    """A session whose tasks run one after the other in this process."""

    def __init__(self):
        self.sparkContext = SimpleNamespace(defaultParallelism=2)

    def range(self, start, end, _step, _parts):
        return Frame([pa.RecordBatch.from_pydict({"id": [number]}) for number in range(start, end)])
