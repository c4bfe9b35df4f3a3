// The client @platformatic/kafka, unmodified, does the checks that the command line names: ADDRESS PREFIX PLAN CHECK...
'use strict'

const { address, brokers, plan, equal, run, text, until } = require('./checks.js')
const { readWith, rebalance, resume, state } = require('./groups.js')
const platformatic = import('@platformatic/kafka')

const TOPIC = 2 // the type of a resource
const ALL = -1
const TWO_DAYS_MS = 172_800_000
const INVALID_TIMESTAMP = 32
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const common = { clientId: 'checks', bootstrapBrokers: [address] }

async function using(kind, config, work) {
  const client = new (await platformatic)[kind]({ ...common, ...config })
  try {
    return await work(client)
  } finally {
    await client.close(true)
  }
}

const withAdmin = work => using('Admin', {}, work)

const messages = (topic, some) =>
  some.map(({ partition, timestamp, key, value, headers }) => ({
    topic,
    partition,
    timestamp: BigInt(timestamp ?? Date.now()),
    key: key ?? undefined,
    value: value ?? undefined,
    headers: new Map(Object.entries(headers ?? {}).map(([name, one]) => [Buffer.from(name), one])),
  }))

const produce = (topic, some, how = {}, config = {}) =>
  using('Producer', config, producer => producer.send({ messages: messages(topic, some), acks: ALL, ...how }))

class Member {
  constructor(topic, groupId, config = {}) {
    this.topic = topic
    this.groupId = groupId
    this.config = config
    this.seen = new Map()
    this.lastAt = Date.now()
  }

  async join() {
    const { Consumer } = await platformatic
    const classic = this.config.groupProtocol ? {} : { heartbeatInterval: 500, sessionTimeout: 10_000 }
    this.consumer = new Consumer({ ...common, groupId: this.groupId, maxWaitTime: 200, autocommit: 200, ...classic, ...this.config })
    this.stream = await this.consumer.consume({ topics: [this.topic], mode: 'committed', fallbackMode: 'earliest' })
    this.stream.on('error', error => console.error(error))
    this.stream.on('data', message => {
      this.seen.set(`${message.partition}:${message.offset}`, message)
      this.lastAt = Date.now()
    })
    return this
  }

  get assigned() {
    return this.consumer?.assignments?.find(one => one.topic === this.topic)?.partitions ?? []
  }

  async leave() {
    await this.stream?.close()
    await this.consumer?.close(true)
    this.consumer = this.stream = undefined
  }
}

const shown = message => text({ ...message.toJSON(), headers: Object.fromEntries(message.headers) })

const read = (topic, expected, config = {}) =>
  readWith(new Member(topic, `${topic}-reader-${JSON.stringify(config).length}`, config), expected)

async function roundTrip(topic, how) {
  await produce(topic, plan.samples, how)
  const found = await read(topic, plan.samples.length)
  plan.samples.forEach((sample, at) => equal(text(sample), shown(found[at]), `record ${at}`))
}

async function offsetsByTime(topic) {
  await produce(topic, plan.samples)
  await withAdmin(async admin => {
    for (const { timestamp, offset } of plan.lookUps) {
      const partitions = [{ partitionIndex: 0, timestamp: BigInt(timestamp) }]
      const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
      equal(offset, Number(found.partitions[0].offset), `offset at ${timestamp}`)
    }
  })
}

async function maxTimestamp(topic) {
  await produce(topic, plan.samples)
  const largest = plan.samples.reduce((most, one) => Math.max(most, Number(one.timestamp)), 0)
  await withAdmin(async admin => {
    const partitions = [{ partitionIndex: 0, timestamp: -3n }]
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
    equal(largest, Number(found.partitions[0].timestamp), 'largest time')
    equal(largest, Number(plan.samples[Number(found.partitions[0].offset)].timestamp), 'time at its offset')
  })
}

async function logAppendTime(topic) {
  const before = Date.now()
  await produce(topic, plan.samples.slice(0, 10))
  for (const message of await read(topic, 10)) {
    const time = Number(message.timestamp)
    if (time < before || time > Date.now()) throw new Error(`append time ${time}`)
  }
}

const codes = error => [error?.apiCode, ...(error?.errors ?? []).flatMap(codes), ...(error?.cause ? codes(error.cause) : [])]

async function tooOldRefused(topic) {
  const message = time => [{ partition: 0, timestamp: time, value: Buffer.from('value') }]
  let refused = null
  await produce(topic, message(Date.now() - TWO_DAYS_MS), { retries: 0 }).catch(error => {
    refused = error
  })
  equal(true, codes(refused).includes(INVALID_TIMESTAMP), `error code of ${refused} (${codes(refused)})`)
  await produce(topic, message(Date.now()))
  await read(topic, 1)
}

const toFour = (topic, count) =>
  produce(topic, Array.from({ length: count }, (_, number) => ({ partition: number % 4, value: Buffer.from(`value ${number}`) })))

async function readAll(topic, count, config) {
  await toFour(topic, count)
  const member = await new Member(topic, topic, config).join()
  try {
    await until(`a member reads ${count} records`, () => member.seen.size >= count, state(member))
    await until('they are committed', async () => Number(await withAdmin(admin => committedSum(admin, topic))) % count === 0)
  } finally {
    await member.leave()
  }
  return member.seen
}

async function transactions(topic) {
  await using('Producer', { idempotent: true, transactionalId: topic }, async producer => {
    for (const end of ['commit', 'abort', 'commit']) {
      const transaction = await producer.beginTransaction()
      await transaction.send({ messages: messages(topic, plan.samples.slice(0, 50)), acks: ALL })
      await transaction[end]()
    }
  })
  await read(topic, 100, { isolationLevel: 1 })
  await read(topic, 150, { isolationLevel: 0, minBytes: 1 })
}

async function commits(admin, topic) {
  const [found] = await admin.listConsumerGroupOffsets({ groups: [{ groupId: topic, topics: [{ name: topic, partitionIndexes: [0, 1, 2, 3] }] }] })
  return found.topics[0].partitions
}

const committed = async (admin, topic, index) =>
  Number((await commits(admin, topic)).find(one => one.partitionIndex === index).committedOffset)

const committedSum = async (admin, topic) =>
  (await commits(admin, topic)).reduce((sum, one) => sum + (one.committedOffset > 0n ? one.committedOffset : 0n), 0n) || 1n

async function retention(admin, topic) {
  const resources = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: ['retention.ms'] }]
  return (await admin.describeConfigs({ resources }))[0].configs[0].value
}

async function adminTopics(topic) {
  await withAdmin(async admin => {
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1, configs: [{ name: 'retention.ms', value: '123456' }] })
    const metadata = async () => (await admin.metadata({ topics: [topic], forceUpdate: true }))
    const partitions = async () => (await metadata()).topics.get(topic).partitionsCount
    equal(2, await partitions(), 'partitions')
    equal('123456', await retention(admin, topic), 'retention.ms')
    await admin.alterConfigs({ resources: [{ resourceType: TOPIC, resourceName: topic, configs: [{ name: 'retention.ms', value: '654321' }] }] })
    equal('654321', await retention(admin, topic), 'changed retention.ms')
    await admin.createPartitions({ topics: [{ name: topic, count: 3, assignments: null }] })
    await until('three partitions', async () => (await partitions()) === 3)
    equal(brokers, (await metadata()).brokers.size, 'brokers')
    await admin.deleteTopics({ topics: [topic] })
    await until('the topic is gone', async () => !(await admin.listTopics()).includes(topic))
  })
}

async function adminGroups(topic) {
  await toFour(topic, 40)
  const member = await new Member(topic, topic).join()
  await withAdmin(async admin => {
    const listed = async () => (await admin.listGroups()).has(topic)
    try {
      await until('the member reads everything', () => member.seen.size === 40, state(member))
      equal(true, await listed(), 'listed')
      equal('STABLE', (await admin.describeGroups({ groups: [topic] })).get(topic).state.toUpperCase(), 'state')
      await until('offsets are committed', async () => (await committed(admin, topic, 1)) === 10)
    } finally {
      await member.leave()
    }
    const changed = { groupId: topic, topics: [{ name: topic, partitionOffsets: [{ partition: 1, offset: 3n }] }] }
    await admin.alterConsumerGroupOffsets(changed)
    equal(3, await committed(admin, topic, 1), 'changed offset')
    await admin.deleteGroups({ groups: [topic] })
    equal(false, await listed(), 'listed when deleted')
  })
}

const rebalanceOf = config => topic =>
  rebalance(new Member(topic, topic, config), new Member(topic, topic, config), count => toFour(topic, count))

const resumeOf = config => topic => resume(count => readAll(topic, count, config))

// The client opens connections ahead of time, and has no callback for those that it closes before they are open.
process.on('uncaughtException', error => console.error(error))

const KIP_848 = { groupProtocol: 'consumer' }

run({
  ...Object.fromEntries(CODECS.map(compression => [`codec_${compression}`, topic => roundTrip(topic, { compression })])),
  idempotent: topic => roundTrip(topic, { idempotent: true }),
  offsets_by_time: offsetsByTime,
  max_timestamp: maxTimestamp,
  log_append_time: logAppendTime,
  too_old_refused: tooOldRefused,
  group_rebalance: rebalanceOf({}),
  group_resume: resumeOf({}),
  group_protocol_consumer: rebalanceOf(KIP_848),
  resume_protocol_consumer: resumeOf(KIP_848),
  transactions,
  admin_topics: adminTopics,
  admin_groups: adminGroups,
})
