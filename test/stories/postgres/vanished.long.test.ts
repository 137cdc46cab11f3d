import { execFileSync, spawn } from 'node:child_process'
import net from 'node:net'
import os from 'node:os'
import { afterAll, expect, it } from 'vitest'
import { createDoor, items, pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres } from '../../helpers/on-postgres.ts'
import { openReader, startPostgres } from '../../helpers/postgres.ts'
import type { LogLine } from '../../helpers/processes.ts'

// A machine that vanishes without a word: its cable is pulled, and nothing that its end would say arrives.

/** A machine on a cable of its own: a network namespace of Linux. */
interface SecondMachine {
  /** This machine, as the other one sees it. */
  host: string
  /** What starts a program there. */
  through: readonly string[]
  /** A port of this machine's loopback can be reached at the same port of the other one's. */
  forward(port: number): Promise<void>
  /** Nothing gets through from now on, and nobody is told. */
  pullCable(): void
  remove(): void
}

/** A network of two, in the range that is kept for measurements of networks, and seldom meets one that is there. */
const NETWORK = `198.18.${process.pid % 256}`
const [HOST, OTHER] = [`${NETWORK}.1`, `${NETWORK}.2`]

const isInUse = () =>
  Object.values(os.networkInterfaces()).some((all) =>
    all?.some(({ address }) => address.startsWith('198.18.')),
  )

const ip = (...args: readonly string[]) => execFileSync('ip', args, { stdio: 'ignore' })

/** Null where this user may make none, or the network is in use. */
function createSecondMachine(): SecondMachine | null {
  if (isInUse()) return null
  const name = `mirror${process.pid}`
  const [here, there] = [`mh${process.pid}`, `mt${process.pid}`]
  const ends: (() => void)[] = []
  const remove = () => {
    for (const end of ends) end()
    for (const made of [
      ['link', 'del', here],
      ['netns', 'del', name],
    ])
      try {
        ip(...made)
      } catch {
        // It was not made.
      }
  }
  try {
    ip('netns', 'add', name)
    ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
    ip('addr', 'add', `${HOST}/30`, 'dev', here)
    ip('link', 'set', here, 'up')
    for (const device of ['lo', there]) ip('-n', name, 'link', 'set', device, 'up')
    ip('-n', name, 'addr', 'add', `${OTHER}/30`, 'dev', there)
  } catch {
    remove()
    return null
  }
  const through = ['ip', 'netns', 'exec', name]
  return {
    host: HOST,
    through,
    async forward(port) {
      const server = net.createServer((socket) => join(socket, net.connect(port, '127.0.0.1')))
      await new Promise<void>((resolve) => server.listen(port, HOST, resolve))
      const [program = '', ...rest]: readonly string[] = [
        ...through,
        process.execPath,
        '--eval',
        FORWARDER,
        String(port),
        HOST,
      ]
      const forwarder = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
      ends.push(
        () => server.close(),
        () => forwarder.kill('SIGKILL'),
      )
      await new Promise((resolve) => forwarder.stdout.once('data', resolve))
    },
    pullCable: () => ip('link', 'set', here, 'down'),
    remove,
  }
}

function join(one: net.Socket, other: net.Socket): void {
  one.pipe(other).pipe(one)
  for (const socket of [one, other]) socket.on('error', () => socket.destroy())
}

const FORWARDER = `
  const net = require('node:net')
  const [port, host] = process.argv.slice(1)
  net.createServer((one) => {
    const other = net.connect(Number(port), host)
    one.pipe(other).pipe(one)
    for (const socket of [one, other]) socket.on('error', () => socket.destroy())
  }).listen(Number(port), '127.0.0.1', () => console.log('ready'))
`

const machine = createSecondMachine()
const server = machine ? await startPostgres(undefined, machine.host) : null
afterAll(async () => {
  await server?.stop()
  machine?.remove()
})
if (!machine) console.warn('no second machine can be made here: only root can')

it.skipIf(!machine || server?.missing !== null)(
  'a machine that vanishes is followed within 30 seconds',
  { timeout: 120_000 },
  async () => {
    if (!machine || !server) return
    const door = createDoor()
    const api = await serve(async (asked) => {
      if (asked.page === 4) await door.opened
      return pageOf(items(9), asked)
    })
    await machine.forward(Number(new URL(api.url).port))
    const { address, workspace } = onPostgres(server, api.url)
    const { user, port, database, schema } = address
    workspace.configure({
      baseUrl: api.url,
      organizations: [ACME],
      schedule: '0 0 1 1 *',
      refresh: false,
      database: `postgres://${user}@${machine.host}:${port}/${database}?schema=${schema}&sslmode=disable`,
    })
    const env = { PGPASSWORD: address.password() ?? '' }
    const far = workspace.start(['start'], { env, through: machine.through })
    await Promise.race([
      api.arrival(({ page }) => page === 4),
      far.ended.then(({ stderr }) => expect(stderr).toBe('')),
    ])
    const near = workspace.start(['start'], { env })
    await near.log(({ event }: LogLine) => event === 'daemon_started')
    const rows = await openReader(address)

    machine.pullCable()
    far.killAll('SIGKILL')
    const pulledAt = performance.now()
    door.open()
    await near.log(({ event }: LogLine) => event === 'run_finished')
    const followed = performance.now() - pulledAt
    near.killAll('SIGTERM')

    expect((await near.ended).code).toBe(0)
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 9 }])
    expect(followed).toBeLessThan(30_000)
  },
)
