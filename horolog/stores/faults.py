"""What an error of a store's client means: a sentence without secrets, and whether a refused create says that the key is taken.

The client's own text may contain signatures, so it is never shown whole.
"""

import re

ABSENT = frozenset({"NoSuchKey", "BlobNotFound", "PathNotFound", "NoSuchVersion"})
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"})
_DENIED = frozenset({
    "AccessDenied", "AuthenticationFailed", "AuthorizationFailure", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
    "SignatureDoesNotMatch", "XAdminUserNotFound",
})  # fmt: skip
_WRONG_CLOCK = "RequestTimeTooSkewed"
"""S3 accepts a signature for 15 minutes."""
_PASSING = frozenset({"404", "408", "409", "412", "429"})
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z' -]*)?)")
_OWN_SERVICES = ("169.254.169.254", "metadata.google.internal", "/latest/api/token", "/latest/meta-data")
_TAKEN_BY_409 = "BlobAlreadyExists"
"""Azure answers 409 to a create of a blob that exists. The 409 of S3 says that another request is under way."""


class StoreError(Exception):
    """An object store refuses, or does not answer; the message is one sentence without secrets."""


class StoreRefusal(StoreError):
    """The store answers, and refuses: asking again does not help before credentials, a policy or the bucket change."""


def code_of(error: Exception) -> str | None:
    """The store's word for what went wrong, if it answered with one."""
    found = _CODE.search(str(error))
    return None if found is None else found[1]


def status_of(error: Exception) -> str | None:
    """The status of an HTTP response with its phrase, if there was a response."""
    found = _STATUS.search(str(error))
    return None if found is None else found[1].strip()


def says_taken(error: Exception) -> bool:
    """Whether an error says for certain that the key exists: a file or 412, and Azure's own 409; any other 409 leaves it open."""
    if type(error).__name__ not in {"AlreadyExistsError", "PreconditionError"}:
        return False
    status = status_of(error)
    return status is None or status.startswith("412") or code_of(error) == _TAKEN_BY_409


def is_refusal(error: Exception) -> bool:
    """Whether an error lasts until an operator acts: 4xx, but not a missing object, a conflict, a timeout or too many requests."""
    text, code, status = str(error), code_of(error), status_of(error)
    if code in _NO_BUCKET or code in _DENIED or any(service in text for service in _OWN_SERVICES):
        return True
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return True
    return status is not None and (status[:3] == "501" or (status[0] == "4" and status[:3] not in _PASSING))


def sentence(error: Exception, bucket: str, where: str) -> str:
    """A client's exception as one sentence; `where` is the host that was asked."""
    text, code, status = str(error), code_of(error), status_of(error)
    if code in _NO_BUCKET:
        return f"there is no bucket {bucket}"
    if any(service in text for service in _OWN_SERVICES):
        return "no credentials were found in options, the environment, a profile or the machine's instance metadata"
    if code == _WRONG_CLOCK:
        return f"access denied ({code}): this machine's clock and the store's differ by too much"
    if code in _DENIED or type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return f"access denied ({code or status or 'no reason is given'})"
    if "TimedOut" in text:
        return f"{where} does not answer in time"
    if "HTTP error" in text or "error sending request" in text:
        return f"{where} cannot be reached"
    if code is not None or status is not None:
        return f"the store answers {status or code}{f' ({code})' if status and code else ''}"
    return re.sub(r"\?\S*", "", text.partition("\n")[0])[:200] or type(error).__name__
