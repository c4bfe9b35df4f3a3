// Members of groups, as the checks of each client need them. A member has `seen`, `assigned`, `lastAt`, `join` and `leave`.
'use strict'

const { equal, until } = require('./checks.js')

const QUIET_MS = 700

const state = (...members) => () => members.map(one => `${one.assigned} (${one.seen.size})`).join(' and ')

// What a member reads until the expected number has come, and then nothing for a moment.
async function readWith(member, expected) {
  await member.join()
  try {
    const enough = () => member.seen.size >= expected && member.assigned.length && Date.now() > member.lastAt + QUIET_MS
    await until(`${expected} records`, enough, () => member.seen.size)
  } finally {
    await member.leave()
  }
  equal(expected, member.seen.size, 'records')
  return [...member.seen.values()]
}

// `write` adds a number of records to the four partitions of the members' topic.
async function rebalance(first, second, write) {
  await write(100)
  await first.join()
  try {
    await until('one member has all partitions', () => first.assigned.length === 4, state(first))
    await second.join()
    const shared = () =>
      first.assigned.length === 2 && second.assigned.length === 2 && new Set([...first.assigned, ...second.assigned]).size === 4
    await until('two members share them', shared, state(first, second))
    await write(100)
    const all = () => new Set([...first.seen.keys(), ...second.seen.keys()]).size === 200
    await until('they read everything', all, state(first, second))
    await second.leave()
    await until('the first has all again', () => first.assigned.length === 4, state(first))
  } finally {
    await Promise.all([first.leave(), second.leave()])
  }
}

// `readAll` writes a number of records, and returns what a member has seen until it has read them.
async function resume(readAll) {
  const before = await readAll(100)
  const after = await readAll(100)
  equal(100, after.size, 'records that the second read')
  equal(0, [...after.keys()].filter(key => before.has(key)).length, 'records that both read')
}

module.exports = { readWith, rebalance, resume, state }
