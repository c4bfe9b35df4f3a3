"""Files of Iceberg tables in HDFS, for `pyiceberg`, whose own way there needs Java's `libhdfs`."""

from typing import Any
from urllib.parse import urlsplit

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.fsspec import FsspecInputFile, FsspecOutputFile

from horolog.pipeline.stores.file_systems import FileSystemPlace


class HdfsIO(FileIO):
    """Its properties are the options of HDFS, by Hadoop's names."""

    def __init__(self, properties: Any = None) -> None:
        super().__init__(properties or {})
        self._opened: dict[str, Any] = {}

    def _files(self, location: str) -> Any:
        scheme, host, *_ = urlsplit(location)
        root = f"{scheme}://{host}"
        if root not in self._opened:
            options = {name: str(value) for name, value in self.properties.items()}
            self._opened[root] = FileSystemPlace.of(root, options).open()
        return self._opened[root]

    def new_input(self, location: str) -> FsspecInputFile:
        return FsspecInputFile(location=location, fs=self._files(location))

    def new_output(self, location: str) -> FsspecOutputFile:
        return FsspecOutputFile(location=location, fs=self._files(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        self._files(path).rm_file(path)
