"""Every error code in a response is found, wherever it stands, in structs and in tuples."""

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API
from horolog.protocol.error_finder import error_finder
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of
from horolog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from horolog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from horolog.protocol.wire import ArrayType, StructType


def produced(*codes):
    answers = [PartitionProduceResponse(index=n, error_code=code) for n, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])


def test_errors_are_found_wherever_they_stand():
    find = error_finder(FetchResponse)
    bad = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    topics = [FetchableTopicResponse(partitions=[PartitionData(), bad]), FetchableTopicResponse(partitions=[bad])]
    assert find(FetchResponse(responses=topics)) == [1, 1]
    assert find(FetchResponse(error_code=70, responses=topics)) == [70, 1, 1]
    assert find(FetchResponse()) is None
    assert error_finder(ProduceResponse)(produced(0, 0)) is None


def every_error_field(struct, place=""):
    for name, declared in struct.FIELDS.items():
        if name.endswith("error_code"):
            yield f"{place}.{name}"
        inner = declared.type.element if isinstance(declared.type, ArrayType) else declared.type
        if isinstance(inner, StructType):
            yield from every_error_field(inner.struct, f"{place}.{name}")


def filled(struct, code):
    """A struct whose arrays have one element each and whose error codes are all set."""
    values = {}
    for name, declared in struct.FIELDS.items():
        if name.endswith("error_code"):
            values[name] = code
        elif isinstance(declared.type, ArrayType) and isinstance(declared.type.element, StructType):
            values[name] = [filled(declared.type.element.struct, code)]
        elif isinstance(declared.type, StructType):
            values[name] = filled(declared.type.struct, code)
    return struct(**values)


@pytest.mark.parametrize("key", sorted(HANDLERS), ids=lambda key: key.name)
def test_every_served_answer_can_be_searched(key):
    response = API[key].response
    find = error_finder(response)
    assert find(response()) is None
    full = filled(response, 7)
    assert (find(full) or []) == [7] * len(list(every_error_field(response)))
    assert error_finder(response, flat=True)(flat_of(full)) == find(full)
