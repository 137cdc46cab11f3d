import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newColumns, overviewOf, runsShown } from '../../../../src/store/core/overview.ts'
import { lastRunsOfAll } from '../../../../src/store/core/runs.ts'
import { runRule, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { openForWriting } from '../../../../src/store/sqlite/file/open-for-writing.ts'
import { mirrorSize } from '../../../../src/store/sqlite/read/status.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'

function createMirror() {
  const file = path.join(tempFolder(), 'mirror.db')
  const connection = openForWriting(file)
  onTestFinished(() => {
    connection.close()
  })
  const addJob = connection.prepare(
    'INSERT INTO sync_jobs (organization_id, collection, configured) VALUES (?, ?, 1)',
  )
  const addRun = connection.prepare(`
    INSERT INTO sync_runs (organization_id, collection, trigger, status, error_code, started_at, finished_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
  `)
  const addColumn = connection.prepare(`
    INSERT INTO sync_known_columns (collection, "column", path, type, first_seen_at, last_changed_at, role)
    VALUES (?, ?, '$.x', 'TEXT', ?, ?, 'value')
  `)
  return { file, connection, addJob, addRun, addColumn }
}

const START = '2026-11-20T08:00:00.000Z'
const END = '2026-11-20T08:01:01.500Z'

describe('the last runs', () => {
  it('are a letter each, the latest first, at most thirty, with the time that the last one took', () => {
    const { connection, addJob, addRun } = createMirror()
    addJob.run('a', 'orders')
    for (let run = 0; run < 40; run++)
      addRun.run('a', 'orders', 'schedule', 'failed', 'NETWORK', START, START)
    addRun.run('a', 'orders', 'schedule', 'succeeded', null, START, END)
    addRun.run('a', 'orders', 'refresh', 'succeeded', null, START, END)
    addRun.run('a', 'orders', 'manual', 'succeeded', 'REMOVALS_HELD', START, END)
    addRun.run('a', 'orders', 'backfill', 'interrupted', 'INTERRUPTED', START, END)
    addRun.run('a', 'orders', 'schedule', 'running', null, START, null)

    const [runs, ...others] = runRule(connection, runsShown(SQLITE))

    expect(others).toEqual([])
    expect(runs).toEqual({
      organization_id: 'a',
      collection: 'orders',
      marks: `rihSs${'f'.repeat(25)}`,
      seconds: expect.closeTo(61.5, 3),
      refresh_seconds: expect.closeTo(61.5, 3),
    })
  })

  it('of a job without any are none', () => {
    const { connection, addJob } = createMirror()
    addJob.run('a', 'orders')

    expect(runRule(connection, runsShown(SQLITE))).toMatchObject([{ marks: '', seconds: null }])
  })
})

it('what ran last is known of every job, and of one that never ran that nothing did', () => {
  const { connection, addJob, addRun } = createMirror()
  for (const [job, at] of [
    ['a', START],
    ['b', END],
  ]) {
    addJob.run(job, 'orders')
    addRun.run(job, 'orders', 'schedule', 'succeeded', null, at, END)
  }

  const lastRuns = runRule(connection, lastRunsOfAll())

  const never = { completedAt: null, startedAt: null, unfinished: false }
  expect(lastRuns('a', 'orders')).toEqual({ ...never, startedAt: Date.parse(START) })
  expect(lastRuns('b', 'orders')).toEqual({ ...never, startedAt: Date.parse(END) })
  expect(lastRuns('a', 'establishments')).toEqual(never)
})

describe('the new columns', () => {
  it('are those that came since a time, and not with the first walk', () => {
    const { connection, addColumn } = createMirror()
    const add = (collection: string, column: string, at: string) => addColumn.run(collection, column, at, at)
    add('orders', 'id', '2026-10-01T00:00:00.000Z')
    add('orders', 'old', '2026-11-01T00:00:00.000Z')
    add('orders', 'first', '2026-11-18T00:00:00.000Z')
    add('orders', 'second', '2026-11-19T00:00:00.000Z')
    add('products', 'id', '2026-11-19T00:00:00.000Z')
    add('products', 'name', '2026-11-19T00:30:00.000Z')

    const found = runRule(connection, newColumns('2026-11-13T00:00:00.000Z'))

    expect(found.map(({ collection, column }) => `${collection}.${column}`)).toEqual([
      'orders.second',
      'orders.first',
    ])
  })
})

it('the overview has the runs, the budgets, the tokens used last and the new columns', () => {
  const { connection, addJob, addColumn } = createMirror()
  addJob.run('a', 'orders')
  for (const at of ['2026-10-01T00:00:00.000Z', END]) addColumn.run('orders', at, at, at)
  connection.exec(
    "INSERT INTO organizations (id, name, configured, last_fingerprint) VALUES ('a', 'acme', 1, 'f')",
  )
  connection.exec("INSERT INTO sync_gates (scope, closed_until, known) VALUES ('f', '', 'text')")

  expect(runRule(connection, overviewOf(SQLITE, Date.parse(START)))).toEqual({
    runs: [expect.objectContaining({ organization_id: 'a' })],
    gates: [{ scope: 'f', known: 'text' }],
    tokensUsed: new Map([['a', 'f']]),
    newColumns: [expect.objectContaining({ column: END })],
  })
})

describe('the size of a mirror', () => {
  it('is that of the file, also through a symbolic link, and of its WAL', () => {
    const { file } = createMirror()
    const link = path.join(tempFolder(), 'link.db')
    fs.symlinkSync(file, link)

    const size = mirrorSize(link)

    expect(size).toEqual({
      bytes: fs.statSync(file).size,
      walBytes: fs.statSync(`${file}-wal`).size,
      freeBytes: expect.any(Number),
    })
    expect(size.walBytes).toBeGreaterThan(0)
  })
})
