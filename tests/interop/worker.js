// Runs one client of Node: worker.js <client> <ports> <name of the lock>
//
// It speaks the protocol of worker.py, and finds the packages in the folder `node_modules` of $INTEROP_NODE.
'use strict'

const { createRequire } = require('node:module')
const { readFileSync } = require('node:fs')
const path = require('node:path')
const readline = require('node:readline')
const { setTimeout: sleep } = require('node:timers/promises')

const folder = path.join(process.env.INTEROP_NODE, 'node_modules')
const install = createRequire(path.join(folder, 'x.js'))

const PAUSE = 3
const TTL = 10_000
// The messages by which the clients say that the key is taken, or not theirs any more.
const REFUSED = ['LockError', 'ExecutionError', 'ResourceLockedError', 'LostLockError']

class Redlock4 {
  constructor(servers, name) {
    Object.assign(this, { servers, name, Redlock: install('redlock-4') })
  }

  async acquire(ttl, how) {
    this.lock = await new this.Redlock(this.servers, how).lock(this.name, ttl)
    return true
  }

  take = (ttl) => this.acquire(ttl, { retryCount: 0 })
  wait = (ttl) => this.acquire(ttl, { retryCount: -1 })
  waitImpatiently = (ttl) =>
    this.acquire(ttl, { retryCount: -1, retryDelay: PAUSE, retryJitter: 1 })
  takeRenewed = async () => null
  extend = async (ttl) => {
    this.lock = await this.lock.extend(ttl)
    return true
  }
  release = async () => {
    await this.lock.unlock()
    return true
  }
}

class Redlock5 {
  constructor(servers, name) {
    Object.assign(this, { servers, name, Redlock: install('redlock-5').default })
  }

  async acquire(ttl, how) {
    this.lock = await new this.Redlock(this.servers, how).acquire([this.name], ttl)
    return true
  }

  take = (ttl) => this.acquire(ttl, { retryCount: 0 })
  wait = (ttl) => this.acquire(ttl, { retryCount: -1 })
  // Between its own tries, the client keeps the votes of a minority of servers, which then refuse the client itself.
  waitImpatiently = async (ttl) => {
    for (;;) {
      try {
        return await this.take(ttl)
      } catch (error) {
        if (!REFUSED.includes(error.name)) throw error
        await sleep(PAUSE)
      }
    }
  }
  // `using` renews, for the length of a routine.
  takeRenewed = async (ttl) => {
    const taken = resolvers()
    const until = resolvers()
    const locks = new this.Redlock(this.servers, { retryCount: 0 })
    this.routine = locks
      .using([this.name], ttl, { automaticExtensionThreshold: ttl / 2 }, async () => {
        taken.resolve(true)
        await until.promise
      })
      .catch(taken.reject)
    this.lock = {
      release: async () => {
        until.resolve()
        await this.routine
      },
    }
    return taken.promise
  }
  extend = async (ttl) => {
    this.lock = await this.lock.extend(ttl)
    return true
  }
  release = async () => {
    await this.lock.release()
    return true
  }
}

class RedisSemaphore {
  constructor(servers, name) {
    Object.assign(this, { servers, name, Mutex: install('redis-semaphore').Mutex })
  }

  async acquire(ttl, how) {
    const lock = new this.Mutex(this.servers[0], this.name, {
      lockTimeout: ttl,
      refreshInterval: 0,
      acquireTimeout: 600_000,
      ...how,
    })
    const taken = await lock.tryAcquire()
    if (taken) this.lock = lock
    return taken
  }

  take = (ttl) => this.acquire(ttl, { acquireAttemptsLimit: 1 })
  wait = (ttl) => this.acquire(ttl)
  waitImpatiently = (ttl) => this.acquire(ttl, { retryInterval: PAUSE })
  takeRenewed = (ttl) =>
    this.acquire(ttl, { acquireAttemptsLimit: 1, refreshInterval: Math.round(ttl * 0.8) })
  // The client has only its own renewal.
  extend = async () => null
  release = async () => {
    await this.lock.release()
    return true
  }
}

function resolvers() {
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}

async function count(server, client, rounds) {
  for (let round = 0; round < rounds; round++) {
    if (!(await client.waitImpatiently(TTL))) throw new Error('the client gave up')
    const number = Number((await server.get('counter')) ?? 0)
    await sleep(1)
    await server.set('counter', number + 1)
    await client.release()
    await sleep(PAUSE)
  }
  return 'done'
}

async function answer(server, client, request) {
  const [verb, ...numbers] = request.trim().split(' ')
  try {
    if (verb === 'count') return await count(server, client, Number(numbers[0]))
    const name = verb.replace('-renewed', 'Renewed')
    const outcome = await client[name](...numbers.map(Number))
    return outcome === null ? 'none' : outcome ? 'yes' : 'no'
  } catch (error) {
    if (REFUSED.includes(error.name) && verb !== 'count') return 'no'
    return `failed: ${error.name}: ${error.message}`.replaceAll('\n', ' ')
  }
}

async function main() {
  const [name, ports, lock] = process.argv.slice(2)
  const Redis = install('ioredis')
  const servers = ports.split(',').map((port) => new Redis({ host: '127.0.0.1', port }))
  const kinds = { 'redlock-4': Redlock4, 'redlock-5': Redlock5, 'redis-semaphore': RedisSemaphore }
  const client = new kinds[name](servers, lock)
  const manifest = readFileSync(path.join(folder, name, 'package.json'))
  console.log(JSON.parse(manifest).version.replace(/^v/, ''))
  for await (const request of readline.createInterface({ input: process.stdin })) {
    console.log(await answer(servers[0], client, request))
  }
  for (const server of servers) server.disconnect()
}

main()
