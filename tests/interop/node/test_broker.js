// A test of somebody who writes JavaScript: starts the test broker, which the arguments name, and moves it over HTTP.
'use strict'

const assert = require('node:assert')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const readline = require('node:readline')
const { Kafka, Partitioners, logLevel } = require('kafkajs')

async function ask(url, method = 'GET', body = undefined) {
  const answer = await fetch(url, { method, body: body && JSON.stringify(body) })
  return { status: answer.status, told: await answer.json() }
}

async function main() {
  const [command, ...words] = process.argv.slice(2)
  const broker = spawn(command, [...words, '--json', '--topic', 'orders:1'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(broker, 'exit')
  const [line] = await once(readline.createInterface({ input: broker.stdout }), 'line')
  const { bootstrap, control } = JSON.parse(line)

  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 20 } })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const fault = await ask(`${control}/faults`, 'POST', {
    kind: 'refuse', error: 'NOT_LEADER_OR_FOLLOWER', api: 'produce', topic: 'orders', times: 1,
  })
  assert.strictEqual(fault.status, 200)
  await producer.send({ topic: 'orders', messages: [{ key: 'alice', value: '{"id": 1}' }] })
  assert.strictEqual((await ask(`${control}/faults/${fault.told.id}`)).told.hits, 1)

  const found = await ask(`${control}/expect`, 'POST', { topic: 'orders', count: 1, key: 'alice', value: { id: 1 } })
  assert.strictEqual(found.status, 200)
  const missing = await ask(`${control}/expect`, 'POST', { topic: 'orders', count: 2, within: '50ms' })
  assert.strictEqual(missing.status, 417)
  assert.match(missing.told.error, /orders: expected 2 records within 50ms, found 1/)

  await ask(`${control}/clock/advance`, 'POST', { by: '8 days' })
  const offsets = await ask(`${control}/topics/orders/offsets`)
  assert.deepStrictEqual(offsets.told, [{ partition: 0, first: 1, end: 1 }])

  await producer.disconnect()
  broker.stdin.end()
  const [code] = await ended
  assert.strictEqual(code, 0)
  console.log('done')
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
