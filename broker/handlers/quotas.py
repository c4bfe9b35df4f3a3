"""DescribeClientQuotas, versions 0 and 1: there are none.

Not done: AlterClientQuotas, which is not advertised.
"""

from __future__ import annotations

from broker.handlers.context import BrokerView, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


def describe(
    broker: BrokerView,  # noqa: ARG001
    request: DescribeClientQuotasRequest,  # noqa: ARG001
    context: RequestContext,  # noqa: ARG001
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=[])
