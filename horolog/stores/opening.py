"""Opens the store that a URL names, with the environment's credentials."""

import importlib.util
import os
from collections.abc import Mapping

from horolog.stores.bucket_store import REQUEST_SECONDS, RETRIES, BucketStore
from horolog.stores.faults import StoreError
from horolog.stores.place import StorePlace


def open_store(
    url: str,
    endpoint: str = "",
    environment: Mapping[str, str] = os.environ,
    request_seconds: float = REQUEST_SECONDS,
    retries: int = RETRIES,
) -> BucketStore:
    """The store of a URL; StoreError if there is none of that kind. No request is sent yet."""
    check_package(url)
    return BucketStore(StorePlace.from_environment(url, endpoint, environment), request_seconds, retries)


def check_package(url: str) -> None:
    """Raises StoreError if nothing can open a store here."""
    if importlib.util.find_spec("obstore") is None:
        raise StoreError(f"{url}: the package obstore is not installed: pip install 'horolog[store]'")
