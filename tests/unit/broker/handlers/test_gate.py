"""The gate is the one that the settings ask for."""

from types import SimpleNamespace

from horolog.broker.handlers import read_only
from horolog.broker.handlers.gate import gate_of, open_gate
from horolog.broker.security.authorizer import Authorizer
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, CreateAclsRequest
from tests.support.request_contexts import request_context


def broker(*, read_only, authorizer=None, audit=None):
    return SimpleNamespace(settings=SimpleNamespace(horolog_read_only=read_only), authorizer=authorizer, audit=audit)


def handle(broker, request, context):
    raise AssertionError("not called by a gate")


def test_an_open_gate_leads_to_the_handler_itself():
    gate = gate_of(broker(read_only=False))
    assert gate is open_gate
    assert gate(ApiKey.PRODUCE, handle) is handle


def test_a_broker_that_only_reads_has_a_gate_of_its_own():
    assert gate_of(broker(read_only=True)) is read_only.gate


def test_with_an_audit_what_changes_nothing_leads_to_the_handler_itself():
    gate = gate_of(broker(read_only=False, audit=object()))
    assert gate(ApiKey.FETCH, handle) is handle
    assert gate(ApiKey.CREATE_ACLS, handle) is not handle


def test_an_authorizer_asks_before_all_others():
    asked = Authorizer((), allow_without_rules=False)
    for only_reads in (False, True):
        gate = gate_of(broker(read_only=only_reads, authorizer=asked))
        assert gate(ApiKey.API_VERSIONS, handle) is handle
        context = request_context(1)
        answer = gate(ApiKey.CREATE_ACLS, handle)(None, CreateAclsRequest(creations=[AclCreation()]), context)
        assert answer.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
