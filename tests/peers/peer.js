// Does the work of one part with a package of npm: peer.js <part> <port> <rounds of each task>
//
// Its last line is JSON: the time for all of it, and the longest wait, in milliseconds. `hold` takes a permit and keeps it until the
// process is killed. `free` counts the permits that can be taken.
'use strict'

const { createRequire } = require('node:module')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')

const install = createRequire(path.join(process.env.PEERS_NODE, 'node_modules', 'x.js'))
const { Redis } = install('ioredis')
const { Semaphore, MultiSemaphore } = install('redis-semaphore')
const Redlock = install('redlock-5').default

const [part, port, rounds] = process.argv.slice(2)
const client = new Redis(Number(port))
const HOLD = 5
const LEASE = 2_000
// Waits as long as it takes. The other settings are the package's own.
const patient = { acquireTimeout: 600_000, lockTimeout: LEASE }

let longest = 0

async function works(acquire, release) {
  for (let round = 0; round < Number(rounds); round += 1) {
    const start = performance.now()
    await acquire()
    longest = Math.max(longest, performance.now() - start)
    await sleep(HOLD)
    await release()
  }
}

function permit(key, limit, count) {
  const semaphore =
    count === 1
      ? new Semaphore(client, key, limit, patient)
      : new MultiSemaphore(client, key, limit, count, patient)
  return () =>
    works(
      () => semaphore.acquire(),
      () => semaphore.release()
    )
}

function pair(first, second) {
  // Its default pause is 200 ms. A tenth of that is kinder to its throughput.
  const redlock = new Redlock([client], { retryCount: -1, retryDelay: 20, retryJitter: 20 })
  let lock
  return () =>
    works(
      async () => (lock = await redlock.acquire([first, second], LEASE)),
      () => lock.release()
    )
}

const times = (count, make) => Array.from({ length: count }, (_, number) => make(number))

const parts = {
  semaphore: () => times(64, () => permit('exports', 5, 1)),
  // The package has no readers and writers: a reader takes one of 16 permits, and a writer all of them.
  readers: () => [
    ...times(16, () => permit('catalogue', 16, 1)),
    ...times(2, () => permit('catalogue', 16, 16)),
  ],
  pairs: () => times(16, (number) => pair(`account:${number % 4}`, `account:${4 + (number % 3)}`)),
}

async function main() {
  if (part === 'hold') {
    await new Semaphore(client, 'exports', 5, patient).acquire()
    console.log('holding')
    return sleep(600_000)
  }
  if (part === 'free') {
    let free = 0
    for (; free < 5; free += 1) {
      const semaphore = new Semaphore(client, 'exports', 5, { ...patient, acquireTimeout: 200 })
      if (!(await semaphore.tryAcquire())) break
    }
    console.log(JSON.stringify({ free }))
    return process.exit(0)
  }
  await client.ping()
  const start = performance.now()
  await Promise.all(parts[part]().map((task) => task()))
  console.log(JSON.stringify({ took: performance.now() - start, longest }))
  process.exit(0)
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
