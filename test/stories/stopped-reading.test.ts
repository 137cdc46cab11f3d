import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { createScene } from '../helpers/scene.ts'
import { mustRun } from '../helpers/system.ts'
import type { Workspace } from '../helpers/workspace.ts'

// What ends real processes of query, export and snapshot: signals while SQLite computes, at the very moment in which they begin
// (the process signals itself then, so that no time counts), and a reader who reads no more.

const COUNTING = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
/** A row so long that it is written at once, and after it nothing for ever. */
const ONE_ROW = `SELECT hex(zeroblob(50000)) AS text UNION ALL SELECT i FROM (${COUNTING}) WHERE i < 0`

/** What `node --import` loads: with the first listener for the signal, before any command is looked at, it comes. */
const LISTENER = `
  process.on('newListener', (name) => {
    if (name === process.env.TEST_SIGNAL) process.kill(process.pid, name)
  })`

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene())
  await workspace.run(['sync'])
  fs.writeFileSync(workspace.file('listener.mjs'), LISTENER)
})

describe.concurrent('a signal', () => {
  it.each<[NodeJS.Signals, string[]]>([
    ['SIGINT', ['query', `SELECT count(*) AS n FROM (${COUNTING})`]],
    ['SIGTERM', ['export', 'orders', '--format', 'csv']],
  ])('(%s) ends a command that is about to read: %j', async (signal, args) => {
    const env = { NODE_OPTIONS: `--import=${workspace.file('listener.mjs')}`, TEST_SIGNAL: signal }

    expect(await workspace.run(args, { env })).toMatchObject({ code: null, signal, stdout: '', stderr: '' })
  })

  it('ends a query while SQLite computes', async () => {
    const running = workspace.start(['query', ONE_ROW, '--format', 'csv'])
    await running.firstLine()

    running.kill('SIGINT')

    expect(await running.ended).toMatchObject({ code: null, signal: 'SIGINT' })
  })

  it('ends a query that waits for its SQL', async () => {
    const pipe = workspace.file('pipe')
    mustRun('mkfifo', pipe)
    // Opened for both, so that its end never comes.
    const running = workspace.start(['query', '-'], { through: ['sh', '-c', `exec "$@" <> ${pipe}`, 'sh'] })

    // More than a pipe holds: most of it has been read.
    await fs.promises.writeFile(pipe, ' '.repeat(200_000))
    running.kill('SIGTERM')

    expect(await running.ended).toMatchObject({ code: 143, signal: null, stdout: '', stderr: '' })
  })

  it('ends a snapshot that is being made, and leaves nothing of it', async () => {
    fs.mkdirSync(workspace.file('copies'))
    const halted = faultsOf({ at: '^VACUUM INTO', does: { says: 'at work', until: '/never' } })
    const snapshot = workspace.start(['snapshot', 'copies/copy.db'], { env: halted })
    await snapshot.log(({ msg }) => msg === 'at work')
    const meanwhile = fs.readdirSync(workspace.file('copies'))

    snapshot.kill('SIGINT')

    expect((await snapshot.ended).code).toBe(130)
    expect(meanwhile.length).toBeGreaterThan(0)
    expect(fs.readdirSync(workspace.file('copies'))).toEqual([])
  })
})

it('a query ends in peace when nobody reads on', async () => {
  const running = workspace.start(['query', COUNTING, '--format', 'csv'])
  await running.firstLine()

  running.closeStdout()

  expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
})
