"""A file's kind, base offset and decoder come from its name and its folder's."""

import pytest

from horolog.client.cli.dumping.kinds import base_offset_of, decoder_of, kind_of

LOG = "00000000000000000042.log"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (LOG, "log"),
        (f"{LOG}.deleted", "log"),
        ("00000000000000000042.timeindex.cleaned", "time-index"),
        ("00000000000000000042.index.swap", "offset-index"),
        ("00000000000000000042.txnindex", "transaction-index"),
        ("00000000000000000042.snapshot", "snapshot"),
        (f"{LOG}.7.42-43.0000beef.damaged", "set-aside"),
        (f"{LOG}.7.42.0000beef.torn", "set-aside"),
        (f"{LOG}.7.damaged", None),
        ("recovery-point-offset-checkpoint", "offset-checkpoint"),
        ("leader-epoch-checkpoint", "leader-epochs"),
        ("horolog-seals", "seals"),
        ("horolog-producers", "producers"),
        ("horolog-cluster", "cluster"),
        (".kafka_cleanshutdown", "clean-shutdown"),
        ("horolog-journal", "journal"),
        ("horolog-checkpoint.12", "worker-checkpoint"),
        ("cleaner-offset-checkpoint.2", "offset-checkpoint"),
        (".kafka_cleanshutdown.2", "clean-shutdown"),
        ("recovery-point-offset-checkpoint.2", None),
        (".lock", None),
        ("README.md", None),
    ],
)
def test_kinds(name, kind):
    assert kind_of(f"/data/topic-0/{name}") == kind


def test_base_offsets_and_decoders():
    assert base_offset_of(f"a/{LOG}") == 42
    assert base_offset_of("a/horolog-seals") is None
    assert decoder_of(f"/d/__consumer_offsets-7/{LOG}") == "offsets"
    assert decoder_of(f"__transaction_state-0/{LOG}") == "transactions"
    assert decoder_of(f"/d/orders-0/{LOG}") is None
