import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { pageOf, serve } from '../helpers/list-server.ts'
import type { RunningCommand } from '../helpers/processes.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// Real processes on a list whose keys were whole numbers, when the first text comes. The tables are changed by a process of
// their own, as those of a large list are.

const NUMBERS = Array.from({ length: 40 }, (_, index) => ({ id: index + 1, state: 'open' }))
const TEXTS = [...NUMBERS, { id: 'x-1', state: 'open' }]

const ORGANIZATIONS = [organization('acme', 1), organization('globex', 2)]

let list: unknown[] = NUMBERS
const server = await serve((asked) => pageOf(list, asked, { perPage: 20 }))
const prepared = await prepare()

/** Two organizations whose orders are in the mirror; from now on each list has a text key, too. */
async function prepare(): Promise<Workspace> {
  const workspace = configured()
  list = [{ id: 1, state: 'new' }]
  await workspace.run(['sync', '--org', 'acme'])
  list = NUMBERS
  await workspace.run(['sync'])
  // As where most of a long history has gone. SQLite counts rows by the last one.
  workspace.change('UPDATE orders_history SET _rowid_ = 20001')
  list = TEXTS
  return workspace
}

function configured(): Workspace {
  return createWorkspace({ baseUrl: server.url, organizations: ORGANIZATIONS })
}

function scene(): Workspace {
  const workspace = configured()
  fs.copyFileSync(prepared.mirror, workspace.mirror)
  return workspace
}

/** Stops with all three tables changed, and nothing committed. */
const stopping = (workspace: Workspace) =>
  faultsOf({
    at: '^COMMIT$',
    from: '^ALTER TABLE "_new_orders_history" RENAME',
    does: { until: workspace.file('never') },
  })

/** Starts it in this process; the process that changes the tables has the environment of this one. */
function startHere(workspace: Workspace): RunningCommand {
  for (const [name, value] of Object.entries(stopping(workspace))) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  return workspace.startHere(['sync', '--org', 'acme'])
}

/** Whether somebody could write at this moment. */
function isFree({ mirror }: Workspace): boolean {
  const connection = new Database(mirror, { timeout: 0 })
  try {
    connection.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    return false
  } finally {
    connection.close()
  }
}

/** Waits until a process is at work on the tables; returns its process id. */
async function underWay(workspace: Workspace): Promise<number> {
  const notice = () => workspace.value("SELECT value FROM sync_settings WHERE name = 'maintenance'")
  while (typeof notice() !== 'string' || isFree(workspace)) await sleep(20)
  const { owner, what } = JSON.parse(String(notice())) as { owner: string; what: string }
  expect(what).toBe('orders: column id becomes TEXT')
  return Number.parseInt(owner, 10)
}

async function freed(workspace: Workspace): Promise<void> {
  for (const end = Date.now() + 30_000; !isFree(workspace); await sleep(20))
    expect(Date.now(), 'the lock is held by a process that should be dead').toBeLessThan(end)
}

/** The old tables, whole, and nothing beside them. */
function expectUnchanged(workspace: Workspace): void {
  expect(workspace.rows('SELECT typeof(id) AS type, count(*) AS rows FROM orders GROUP BY 1')).toEqual([
    { type: 'integer', rows: 80 },
  ])
  expect(workspace.value("SELECT type FROM sync_columns WHERE role = 'key'")).toBe('INTEGER')
  expectSound(workspace)
}

function expectWhole(workspace: Workspace): void {
  for (const table of ['orders', 'orders_raw']) {
    expect(workspace.rows(`SELECT typeof(id) AS type, count(*) AS rows FROM ${table} GROUP BY 1`)).toEqual([
      { type: 'text', rows: 82 },
    ])
  }
  expect(workspace.rows('SELECT organization, rows FROM sync_status')).toEqual([
    { organization: 'acme', rows: 41 },
    { organization: 'globex', rows: 41 },
  ])
  expectSound(workspace)
}

function expectSound(workspace: Workspace): void {
  const left = `SELECT count(*) FROM sqlite_schema WHERE name LIKE '%\\_new\\_%' ESCAPE '\\'`
  expect(workspace.value(left)).toBe(0)
  expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
}

describe('a key that becomes TEXT', () => {
  it('is no matter when the process is killed over it: its helper ends with it, and the next one does it', async () => {
    const workspace = scene()
    const sync = workspace.start(['sync', '--org', 'acme'], { env: stopping(workspace) })
    await underWay(workspace)

    sync.kill('SIGKILL')
    await freed(workspace)

    expectUnchanged(workspace)
    const { code, logs } = await workspace.run(['sync'])
    expect(code).toBe(0)
    expect(logs.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(/^orders: column id becomes TEXT; 20,161 rows to go through$/),
    )
    expect(workspace.value("SELECT count(*) FROM sync_settings WHERE name = 'maintenance'")).toBe(0)
    expectWhole(workspace)
  })

  it('is undone by a signal at once', async () => {
    const workspace = scene()
    const sync = startHere(workspace)
    await underWay(workspace)

    sync.kill('SIGTERM')
    const { code } = await sync.ended

    expect(code).toBe(143)
    expect(isFree(workspace)).toBe(true)
    expectUnchanged(workspace)
    expect(workspace.rows('SELECT DISTINCT status FROM sync_runs WHERE id > 3')).toEqual([
      { status: 'interrupted' },
    ])
  })

  it('fails the command when its helper alone is killed, with nothing changed', async () => {
    const workspace = scene()
    const sync = startHere(workspace)
    const helper = await underWay(workspace)

    process.kill(helper, 'SIGKILL')
    const { code, stderr } = await sync.ended

    expect(code, stderr).toBe(4)
    expect(stderr).toMatch(/column id becomes TEXT: .*SIGKILL.*nothing has changed; run the command again/)
    expectUnchanged(workspace)
  })
})
