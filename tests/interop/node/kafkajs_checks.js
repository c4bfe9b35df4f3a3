// The client kafkajs, unmodified, does the checks that the command line names: ADDRESS PREFIX PLAN CHECK...
'use strict'

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, Partitioners, logLevel } = require('kafkajs')
const LZ4 = require('kafkajs-lz4')
const snappy = require('kafkajs-snappy')
const zstd = require('@mongodb-js/zstd')
const { address, brokers, plan, equal, run, text, until } = require('./checks.js')
const { readWith, rebalance, resume, state } = require('./groups.js')

const TWO_DAYS_MS = 172_800_000
const INVALID_TIMESTAMP = 32

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = new LZ4().codec
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: encoder => zstd.compress(encoder.buffer),
  decompress: data => zstd.decompress(data),
})
const CODECS = {
  codec_none: CompressionTypes.None,
  codec_gzip: CompressionTypes.GZIP,
  codec_snappy: CompressionTypes.Snappy,
  codec_lz4: CompressionTypes.LZ4,
  codec_zstd: CompressionTypes.ZSTD,
}

const kafka = new Kafka({ brokers: [address], clientId: 'checks', logLevel: logLevel.ERROR })

async function withProducer(config, work) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...config })
  await producer.connect()
  try {
    return await work(producer)
  } finally {
    await producer.disconnect()
  }
}

const produce = (topic, messages, how = {}, config = {}) =>
  withProducer(config, producer => producer.send({ topic, messages, acks: -1, ...how }))

async function withAdmin(work) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

class Member {
  constructor(topic, groupId, config = {}) {
    this.topic = topic
    this.seen = new Map()
    this.assigned = []
    this.lastAt = Date.now()
    this.consumer = kafka.consumer({ groupId, heartbeatInterval: 500, maxWaitTimeInMs: 200, ...config })
    this.consumer.on(this.consumer.events.GROUP_JOIN, event => {
      this.assigned = event.payload.memberAssignment[topic] || []
      this.lastAt = Date.now()
    })
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.assigned = []
    })
  }

  async join() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning: true })
    await this.consumer.run({
      eachMessage: async ({ partition, message }) => {
        this.seen.set(`${partition}:${message.offset}`, message)
        this.lastAt = Date.now()
      },
    })
    return this
  }

  leave() {
    return this.consumer.disconnect()
  }
}

// kafkajs reads in groups only: a group of its own.
const read = (topic, expected, config = {}) =>
  readWith(new Member(topic, `${topic}-reader-${JSON.stringify(config).length}`, config), expected)

async function roundTrip(topic, how, config) {
  await produce(topic, plan.samples, how, config)
  const found = await read(topic, plan.samples.length)
  plan.samples.forEach((sample, at) => equal(text(sample), text(found[at]), `record ${at}`))
}

async function offsetsByTime(topic) {
  await produce(topic, plan.samples)
  await withAdmin(async admin => {
    for (const { timestamp, offset } of plan.lookUps) {
      const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
      // Where there is none, the client asks for the end.
      equal(offset < 0 ? plan.samples.length : offset, Number(found.offset), `offset at ${timestamp}`)
    }
  })
}

async function logAppendTime(topic) {
  const before = Date.now()
  const [report] = await produce(topic, plan.samples.slice(0, 10))
  const times = (await read(topic, 10)).map(message => Number(message.timestamp))
  for (const time of [...times, Number(report.logAppendTime)]) {
    if (time < before || time > Date.now()) throw new Error(`append time ${time}`)
  }
}

async function tooOldRefused(topic) {
  const message = time => [{ partition: 0, timestamp: String(time), value: 'value' }]
  let refused = null
  await produce(topic, message(Date.now() - TWO_DAYS_MS)).catch(error => {
    refused = error
  })
  equal(INVALID_TIMESTAMP, refused && (refused.code ?? refused.cause?.code), `error code of ${refused}`)
  await produce(topic, message(Date.now()))
  await read(topic, 1)
}

const toFour = (topic, count) =>
  produce(topic, Array.from({ length: count }, (_, number) => ({ partition: number % 4, value: `value ${number}` })))

async function readAll(topic, count) {
  await toFour(topic, count)
  const member = await new Member(topic, topic).join()
  try {
    await until(`a member reads ${count} records`, () => member.seen.size >= count, state(member))
  } finally {
    await member.leave()
  }
  return member.seen
}

const TRANSACTIONAL = { idempotent: true, maxInFlightRequests: 1 }

async function transactions(topic) {
  await withProducer({ ...TRANSACTIONAL, transactionalId: topic }, async producer => {
    for (const end of ['commit', 'abort', 'commit']) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: plan.samples.slice(0, 50) })
      await transaction[end]()
    }
  })
  await read(topic, 100)
  await read(topic, 150, { readUncommitted: true })
}

async function transactionOffsets(topic) {
  await withProducer({ ...TRANSACTIONAL, transactionalId: topic }, async producer => {
    for (const [end, offset] of [['commit', '7'], ['abort', '40']]) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: plan.samples.slice(0, 50) })
      const topics = [{ topic, partitions: [{ partition: 0, offset }] }]
      await transaction.sendOffsets({ consumerGroupId: topic, topics })
      await transaction[end]()
    }
  })
  await withAdmin(async admin => equal('7', await committed(admin, topic, 0), 'committed offset'))
}

async function committed(admin, topic, partition) {
  const [fetched] = await admin.fetchOffsets({ groupId: topic, topics: [topic] })
  return fetched.partitions.find(one => one.partition === partition)?.offset
}

async function retention(admin, topic) {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }]
  return (await admin.describeConfigs({ resources })).resources[0].configEntries[0].configValue
}

async function adminTopics(topic) {
  await withAdmin(async admin => {
    const configEntries = [{ name: 'retention.ms', value: '123456' }]
    await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1, configEntries }] })
    const partitions = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
    equal(2, await partitions(), 'partitions')
    equal('123456', await retention(admin, topic), 'retention.ms')
    const changed = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: 'retention.ms', value: '654321' }] }
    await admin.alterConfigs({ resources: [changed] })
    equal('654321', await retention(admin, topic), 'changed retention.ms')
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    await until('three partitions', async () => (await partitions()) === 3)
    equal(brokers, (await admin.describeCluster()).brokers.length, 'brokers')
    await admin.deleteTopics({ topics: [topic] })
    await until('the topic is gone', async () => !(await admin.listTopics()).includes(topic))
  })
}

async function adminGroups(topic) {
  await toFour(topic, 40)
  const member = await new Member(topic, topic).join()
  await withAdmin(async admin => {
    const listed = async () => (await admin.listGroups()).groups.some(group => group.groupId === topic)
    try {
      await until('the member reads everything', () => member.seen.size === 40, state(member))
      equal(true, await listed(), 'listed')
      equal('Stable', (await admin.describeGroups([topic])).groups[0].state, 'state')
    } finally {
      await member.leave()
    }
    equal('10', await committed(admin, topic, 1), 'committed offset')
    await admin.setOffsets({ groupId: topic, topic, partitions: [{ partition: 1, offset: '3' }] })
    equal('3', await committed(admin, topic, 1), 'changed offset')
    await admin.deleteGroups([topic])
    equal(false, await listed(), 'listed when deleted')
  })
}

const CHECKS = {
  ...Object.fromEntries(Object.entries(CODECS).map(([name, compression]) => [name, topic => roundTrip(topic, { compression })])),
  idempotent: topic => roundTrip(topic, {}, { idempotent: true }),
  offsets_by_time: offsetsByTime,
  log_append_time: logAppendTime,
  too_old_refused: tooOldRefused,
  group_rebalance: topic => rebalance(new Member(topic, topic), new Member(topic, topic), count => toFour(topic, count)),
  group_resume: topic => resume(count => readAll(topic, count)),
  transactions,
  transaction_offsets: transactionOffsets,
  admin_topics: adminTopics,
  admin_groups: adminGroups,
}

run(CHECKS)
