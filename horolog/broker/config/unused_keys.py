"""Kafka's settings that its brokers change while they run, and that nothing here depends on: they are checked, kept and shown.

Tools that set them go on as with Kafka. Keys that ask for protection are not among them: to take those would promise it.
"""

from horolog.broker.config.setting_types import ConfigType, Spec

_SENTENCE = "Accepted for compatibility with Kafka, but not used."


def _empty_word(text: str) -> str | None:
    words = text.split(",") if text else []
    return None if all(word.strip() for word in words) else "empty entries between commas are not allowed"


_ROWS = (
    Spec("background.threads", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("compression.gzip.level", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1, high=9, also=-1),
    Spec("compression.lz4.level", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1, high=17),
    Spec("compression.zstd.level", ConfigType.INT, None, _SENTENCE, dynamic=True, low=-131_072, high=22),
    Spec("config.providers", ConfigType.LIST, None, _SENTENCE, dynamic=True, check=_empty_word),
    Spec("cordoned.log.dirs", ConfigType.LIST, None, _SENTENCE, dynamic=True, check=_empty_word),
    Spec("follower.fetch.last.tiered.offset.enable", ConfigType.BOOLEAN, None, _SENTENCE, dynamic=True),
    Spec("group.coordinator.cached.buffer.max.bytes", ConfigType.INT, None, _SENTENCE, dynamic=True, low=524_288),
    Spec("log.cleaner.io.buffer.load.factor", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("log.cleaner.io.buffer.size", ConfigType.INT, None, _SENTENCE, dynamic=True, low=0),
    Spec("log.cleaner.io.max.bytes.per.second", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("log.cleaner.threads", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("log.local.retention.bytes", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=-2),
    Spec("log.local.retention.ms", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=-2),
    Spec("metric.reporters", ConfigType.LIST, None, _SENTENCE, dynamic=True, check=_empty_word),
    Spec("num.io.threads", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("num.network.threads", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("num.recovery.threads.per.data.dir", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("num.replica.fetchers", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.fetch.max.wait.ms", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.list.offsets.request.timeout.ms", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.index.file.cache.total.size.bytes", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.manager.copier.thread.pool.size", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.manager.copy.max.bytes.per.second", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.manager.expiration.thread.pool.size", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.manager.fetch.max.bytes.per.second", ConfigType.LONG, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.manager.follower.thread.pool.size", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("remote.log.reader.threads", ConfigType.INT, None, _SENTENCE, dynamic=True, low=1),
    Spec("sasl.kerberos.kinit.cmd", ConfigType.STRING, None, _SENTENCE, dynamic=True),
    Spec("sasl.kerberos.min.time.before.relogin", ConfigType.LONG, None, _SENTENCE, dynamic=True),
    Spec("sasl.kerberos.ticket.renew.jitter", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("sasl.kerberos.ticket.renew.window.factor", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("sasl.login.refresh.buffer.seconds", ConfigType.SHORT, None, _SENTENCE, dynamic=True),
    Spec("sasl.login.refresh.min.period.seconds", ConfigType.SHORT, None, _SENTENCE, dynamic=True),
    Spec("sasl.login.refresh.window.factor", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("sasl.login.refresh.window.jitter", ConfigType.DOUBLE, None, _SENTENCE, dynamic=True),
    Spec("share.coordinator.cached.buffer.max.bytes", ConfigType.INT, None, _SENTENCE, dynamic=True, low=524_288),
    Spec("ssl.keymanager.algorithm", ConfigType.STRING, None, _SENTENCE, dynamic=True),
    Spec("ssl.provider", ConfigType.STRING, None, _SENTENCE, dynamic=True),
    Spec("ssl.secure.random.implementation", ConfigType.STRING, None, _SENTENCE, dynamic=True),
    Spec("ssl.trustmanager.algorithm", ConfigType.STRING, None, _SENTENCE, dynamic=True),
    Spec("transaction.partition.verification.enable", ConfigType.BOOLEAN, None, _SENTENCE, dynamic=True),
    Spec("unclean.leader.election.enable", ConfigType.BOOLEAN, None, _SENTENCE, dynamic=True),
)
"""Those of Kafka 4.3 that DescribeConfigs does not call read-only, but for what `settings.SPECS` has: with the types and bounds that Kafka
checks. What it checks against other settings, such as that a pool at most doubles, does not matter where there is no pool.
"""

NAMES = frozenset(row.name for row in _ROWS)
_BY_NAME = {row.name: row for row in _ROWS}


def row(key: str) -> Spec | None:
    """The row of such a key; none for any other."""
    return _BY_NAME.get(key)
