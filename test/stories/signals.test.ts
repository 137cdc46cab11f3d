import fs from 'node:fs'
import { expect, it } from 'vitest'
import { faultsOf, mustRun, type Running, stop } from '../helpers/processes.ts'
import { createStanding, sceneTests } from '../helpers/scene.ts'
import { copyOf, expectWhole, ORDERS } from './crash-scene.ts'

// Signals to real processes that wait or compute, and readers who read no more. What a run keeps: test/sync/job.test.ts; answers that are broken
// off: test/api/http.test.ts; how soon a wait for a lock ends: test/store/sqlite/runner.test.ts.

it('SIGHUP ends a sync that waits for an answer with 129, and nothing is lost', async () => {
  const options = { start: 'start', list: ORDERS, page: 3 } as const
  const { workspace, running, open } = await createStanding(['sync'], options)

  expect(await stop(running, 'SIGHUP')).toMatchObject({ code: 129, signal: null })
  expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
    { status: 'open', next_page: 3 },
  ])
  expect(workspace.rows('SELECT status, error_code, requests FROM sync_runs')).toEqual([
    { status: 'interrupted', error_code: 'INTERRUPTED', requests: 3 },
  ])
  copyOf(workspace).close()
  open()
  expect((await workspace.run(['sync'])).code).toBe(0)
  expectWhole(workspace)
})

const withMirror = sceneTests()

withMirror(
  'SIGINT ends a snapshot that is being made, and leaves nothing of it',
  async ({ synced: { workspace } }) => {
    const copies = workspace.file('copies')
    fs.mkdirSync(copies)
    const env = faultsOf({ at: '^VACUUM INTO', does: { saysAndStands: 'at work' } })
    const snapshot = workspace.start(['snapshot', 'copies/copy.db'], { env })
    await snapshot.log(({ msg }) => msg === 'at work')
    expect(fs.readdirSync(copies)).not.toEqual([])
    expect((await stop(snapshot, 'SIGINT')).code).toBe(130)
    expect(fs.readdirSync(copies)).toEqual([])
  },
)

const COUNTING = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
/** A row so long that it is written at once, and after it nothing for ever. */
const ONE_ROW = `SELECT hex(zeroblob(50000)) AS text UNION ALL SELECT i FROM (${COUNTING}) WHERE i < 0`

withMirror.for<[string, string, (running: Running) => void, object]>([
  ['that computes is ended by SIGINT', ONE_ROW, (one) => one.kill('SIGINT'), { signal: 'SIGINT' }],
  ['ends in peace when nobody reads on', COUNTING, (one) => one.closeStdout(), { code: 0, stderr: '' }],
])('a query %s', async ([, sql, act, expected], { synced: { workspace } }) => {
  const running = workspace.start(['query', sql, '--format', 'csv'])
  await running.firstLine()

  act(running)

  expect(await running.ended).toMatchObject(expected)
})

withMirror('a query that waits for its SQL is ended by SIGTERM', async ({ synced: { workspace } }) => {
  const pipe = workspace.file('pipe')
  mustRun('mkfifo', pipe)
  // Opened for both, so that its end never comes.
  const running = workspace.start(['query', '-'], { through: ['sh', '-c', `exec "$@" <> ${pipe}`, 'sh'] })

  // More than a pipe holds: most of it has been read.
  await fs.promises.writeFile(pipe, ' '.repeat(200_000))
  expect(await stop(running)).toMatchObject({ signal: 'SIGTERM', stdout: '', stderr: '' })
})

it('a log that nobody reads any more stops no sync', async () => {
  const options = { start: 'start', list: ORDERS, page: 3 } as const
  const { workspace, running, open } = await createStanding(['sync', '--log-level', 'trace'], options)

  running.closeStderr()
  open()

  expect((await running.ended).code).toBe(0)
  expect(workspace.value('SELECT status FROM sync_walks')).toBe('complete')
})
