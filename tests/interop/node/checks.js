// What the programs of JavaScript clients share: the plan, how results are compared, and the lines that are printed.
'use strict'

const fs = require('node:fs')

const WAIT_MS = 30_000
const [address, prefix, planFile, ...wanted] = process.argv.slice(2)
const brokers = Number(process.env.HOROLOG_TEST_BROKERS ?? process.env.HOROLOG_TEST_WORKERS ?? 1) // each worker is a broker to clients

function readPlan(file) {
  const bytes = hex => (hex === '-' ? null : Buffer.from(hex, 'hex'))
  const samples = []
  const lookUps = []
  for (const line of fs.readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const parts = line.split('\t')
    if (parts[0] === 'lookup') {
      lookUps.push({ timestamp: Number(parts[1]), offset: Number(parts[2]) })
      continue
    }
    const headers = Object.fromEntries(parts[4].split(',').map(one => [one.split('=')[0], bytes(one.split('=')[1])]))
    samples.push({ partition: 0, timestamp: parts[1], key: bytes(parts[2]), value: bytes(parts[3]), headers })
  }
  return { samples, lookUps }
}

function equal(expected, found, what) {
  if (expected !== found) throw new Error(`${what}: expected ${expected}, found ${found}`)
}

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function until(what, held, state = () => '') {
  for (const end = Date.now() + WAIT_MS; !(await held()); await sleep(20)) {
    if (Date.now() > end) throw new Error(`never came about: ${what}; ${state()}`)
  }
}

function text(message) {
  const show = data => (data === null || data === undefined ? '-' : Buffer.from(data).toString('hex'))
  const headers = Object.entries(message.headers || {}).map(([name, value]) => `${name}=${show(value)}`)
  return `${message.timestamp} ${show(message.key)} ${show(message.value)} ${headers.join(' ')}`
}

async function bounded(check, topic) {
  const late = sleep(2 * WAIT_MS).then(() => {
    throw new Error('the check did not end in time')
  })
  await Promise.race([check(topic), late])
}

async function run(checks) {
  for (const check of wanted) {
    let detail = ''
    await bounded(checks[check], `${prefix}-${check}`).catch(error => {
      detail = `${error}`.slice(0, 400)
      console.error(error)
    })
    console.log(JSON.stringify({ check, ok: detail === '', detail }).replace('{"check":', '{"check": '))
  }
  process.exit(0)
}

module.exports = { address, brokers, plan: readPlan(planFile), equal, run, sleep, text, until }
