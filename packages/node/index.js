// Starts `horolog test-broker` for a test. The broker ends with stop(), and with this process at the latest.
'use strict'

const { spawn } = require('node:child_process')
const readline = require('node:readline')

const READY_MS = 30_000

class TestBroker {
  constructor(child, addresses) {
    this.child = child
    this.bootstrap = addresses.bootstrap
    this.control = addresses.control
    this.registry = addresses.registry
    this.pid = addresses.pid
  }

  /** Sends a request to the control endpoint, and returns its JSON; an error of the endpoint is thrown. */
  async call(method, path, body) {
    const response = await fetch(this.control + path, { method, body: body && JSON.stringify(body) })
    const found = await response.json()
    if (!response.ok) throw new Error(found.error)
    return found
  }

  /** Advances the broker's clock, and returns once everything due is done: advance('3 days'). */
  async advance(by) {
    return this.call('POST', '/clock/advance', { by })
  }

  async stop() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const ended = new Promise((resolve) => this.child.once('exit', resolve))
    this.child.ref()
    this.child.stdin.end()
    await ended
  }
}

function words({ topics = {}, settings = {}, clock, registry }) {
  return [
    ...Object.entries(topics).flatMap(([name, partitions]) => ['--topic', `${name}:${partitions}`]),
    ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
    ...(clock ? ['--clock', clock] : []),
    ...(registry ? ['--registry'] : []),
  ]
}

/** Starts a broker on a free port, with its data in memory. */
function startBroker(options = {}) {
  const [program, ...first] = options.command ?? ['horolog']
  const child = spawn(program, [...first, 'test-broker', '--json', ...words(options)])
  let errors = ''
  child.stderr.on('data', (piece) => { errors = (errors + piece).slice(-4000) })
  child.stdin.on('error', () => {}) // the broker may end first
  return new Promise((resolve, reject) => {
    const fail = (reason) => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      reject(new Error(`the broker did not start: ${reason}`))
    }
    const timer = setTimeout(() => fail(`it was not ready within ${READY_MS / 1000} s`), READY_MS)
    child.once('error', (error) => fail(`${error.message}; install it with: pip install horolog`))
    child.once('close', () => fail(errors.trim() || 'it ended at once'))
    readline.createInterface({ input: child.stdout }).once('line', (line) => {
      clearTimeout(timer)
      child.removeAllListeners('close')
      for (const one of [child, child.stdin, child.stdout, child.stderr]) one.unref()
      resolve(new TestBroker(child, JSON.parse(line)))
    })
  })
}

module.exports = { startBroker, TestBroker }
