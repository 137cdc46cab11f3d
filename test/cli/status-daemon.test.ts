import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Status, StatusSchema } from '../../src/report/status.ts'
import { createDoor, items, pageOf, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'
import { written } from './written.ts'

const ACME = organization('acme', 1)
/** Never fires while a test runs, unless it runs at New Year's midnight. */
const YEARLY = { schedule: '0 0 1 1 *' }

async function createScene(more: object = {}) {
  const server = await serve((asked) => pageOf(items(6), asked))
  const settings = { baseUrl: server.url, organizations: [ACME], ...YEARLY, ...more }
  const workspace = createWorkspace(settings)
  return { server, workspace, settings }
}

async function statusOf(workspace: Workspace): Promise<Status> {
  const { stdout, stderr } = await workspace.run(['status', '--json'])
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Status
}

/** Of another `start`. */
function warnings(lines: readonly LogLine[]): LogLine[] {
  return lines.filter(({ event }) => event === 'daemon_beside')
}

/** As if all of it had happened in 2020. */
function makeOld(workspace: Workspace): void {
  const then = "'2020-01-01T00:00:00.000Z'"
  workspace.change(`UPDATE sync_walks SET started_at = ${then}, finished_at = ${then}`)
  workspace.change(`UPDATE sync_runs SET started_at = ${then}, finished_at = ${then}`)
}

describe.concurrent('a daemon', () => {
  it('is told of while it runs, with the next time of each list', async () => {
    const { workspace } = await createScene()
    const daemon = workspace.start(['start'])
    await daemon.log(({ event }) => event === 'run_finished')

    const told = await statusOf(workspace)
    const { stdout } = await workspace.run(['status'])
    workspace.change(`VACUUM INTO '${workspace.file('backup.db')}'`)
    daemon.kill('SIGTERM')
    await daemon.ended
    const after = await statusOf(workspace)
    fs.copyFileSync(workspace.file('backup.db'), workspace.mirror)
    const restored = await statusOf(workspace)

    const nextYear = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1)).toISOString()
    expect(told).toMatchObject({
      version: 1,
      verdict: 'the only list is well',
      check_exit_code: 0,
      timezone: 'UTC',
      daemon: { running: true, processes: [{ pid: expect.any(Number), running: true }] },
      jobs: [{ schedule: '0 0 1 1 *', next_run_at: nextYear, due_at: null, overdue: false }],
    })
    expect(stdout).toMatch(/^daemon: runs since \S+ \(.*\), process \d+$/m)
    expect(stdout).toMatch(/acme orders .*, next in \d+ (days|hours)/)
    expect(after.daemon).toEqual({ running: false, processes: [] })
    expect(after.verdict).toBe('the only list is up to date; no daemon runs: nothing is read by itself')
    // The backup names a process that was stopped since then, and not killed.
    expect(workspace.rows("SELECT 1 FROM sync_settings WHERE name GLOB 'daemon *'")).toHaveLength(1)
    expect([restored.daemon, restored.verdict]).toEqual([after.daemon, after.verdict])
  })

  it('that was killed is told of as dead, until the next one begins', async () => {
    const { workspace } = await createScene()
    const daemon = workspace.start(['start'])
    await daemon.log(({ event }) => event === 'run_finished')
    daemon.killAll('SIGKILL')
    await daemon.ended

    // Lock files of that age are swept by any other command.
    const locks = `${workspace.mirror}-owners`
    for (const lock of fs.readdirSync(locks)) fs.utimesSync(path.join(locks, lock), 0, 0)
    await workspace.run(['sync'])
    const dead = await statusOf(workspace)
    const { stdout } = await workspace.run(['status'])
    const next = workspace.start(['start'])
    await next.log(({ msg }) => msg === 'started')
    const again = await statusOf(workspace)
    next.kill('SIGTERM')
    await next.ended

    expect(dead.daemon).toMatchObject({ running: false, processes: [{ running: false }] })
    expect(stdout).toMatch(/^daemon: process \d+, .* died without being stopped$/m)
    expect(stdout).not.toMatch(/are well|next in/)
    expect(again.daemon).toMatchObject({ running: true, processes: [{ running: true }] })
  })

  it('beside another one is told of, by the second one and by status; of one that died or ended nothing is said', async () => {
    const { workspace } = await createScene()
    const first = workspace.start(['start'])
    await first.log(({ event }) => event === 'run_finished')
    const second = workspace.start(['start'])
    const warned = await second.log(({ event }) => event === 'daemon_beside')
    await second.log(({ event }) => event === 'daemon_started')

    const { stdout, code } = await workspace.run(['status', '--check'])
    first.killAll('SIGKILL')
    await first.ended
    const third = workspace.start(['start'])
    await third.log(({ event }) => event === 'daemon_started')
    for (const one of [second, third]) one.kill('SIGTERM')
    const ended = [await second.ended, await third.ended]
    const last = workspace.start(['start'])
    await last.log(({ event }) => event === 'daemon_started')
    last.kill('SIGTERM')
    const { logs } = await last.ended

    expect(warned).toMatchObject({ level: 'warn', msg: expect.stringContaining('end one of them') })
    expect(stdout).toMatch(/^daemon: runs since .*, process \d+; runs since .*, process \d+$/m)
    expect(stdout).toMatch(/^next: end all daemons but one, since each of them reads every list: \d+, \d+$/m)
    expect(code).toBe(0)
    // The third one warns of the second, and not of the first, which died.
    expect(warnings(ended[1]?.logs ?? [])).toHaveLength(1)
    expect(warnings(logs)).toEqual([])
  })

  it('is not what a sync is taken for', async () => {
    const door = createDoor()
    const server = await serve(async (asked) => {
      if (asked.page === 4) await door.opened
      return pageOf(items(8), asked)
    })
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], ...YEARLY })
    const sync = workspace.start(['sync'])
    await server.arrival(({ page }) => page === 4)
    await written(workspace, 4)

    const told = await statusOf(workspace)
    const { stdout } = await workspace.run(['status'])
    door.open()
    await sync.ended

    expect(told.daemon).toEqual({ running: false, processes: [] })
    expect(told.jobs).toMatchObject([{ running: true, walk_page: 4, walk_percent: 75, overdue: false }])
    expect(told.jobs[0]?.walk_left_ms).toEqual(expect.any(Number))
    expect(stdout).toMatch(/running since .*: page 4, 6 of 8 items seen \(75 %\), about .* left/)
  })
})

describe.concurrent('status --check', () => {
  it('exits with 0 while no list is overdue, and with 1 once one is', async () => {
    const { workspace } = await createScene()
    const before = await workspace.run(['status', '--check'])
    await workspace.run(['sync'])
    const fresh = await workspace.run(['status', '--check'])
    makeOld(workspace)

    const old = await workspace.run(['status', '--check'])
    const plain = await workspace.run(['status'])

    expect([before.code, fresh.code, old.code, plain.code]).toEqual([1, 0, 1, 0])
    expect(old.stdout).toContain(
      'the only list needs attention (overdue); no daemon runs: nothing is read by itself',
    )
    expect(old.stdout).toMatch(
      /overdue: by its schedule \(0 0 1 1 \*\) it was to be read at 2021-01-01T00:00:00\.000Z/,
    )
    expect(old.stdout).toContain('next: admin-mirror sync --org acme\n')
  })

  it('takes a list for overdue by the time zone of its schedule', async () => {
    const { workspace } = await createScene({ timezone: 'Asia/Tokyo' })
    await workspace.run(['sync'])
    makeOld(workspace)

    const [job] = (await statusOf(workspace)).jobs

    expect(job?.due_at).toBe('2020-12-31T15:00:00.000Z')
  })

  it('exits with 1 after a failed run, 5 with removals held back, 3 with a held token', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    const codes: (number | null)[] = []
    for (const change of [
      "UPDATE sync_jobs SET failing_since = '2026-01-01T00:00:00.000Z', failing_by = 'walk', failing_code = 'NETWORK'",
      "UPDATE sync_jobs SET removals_held = 3, held_why = 'brake'",
      "UPDATE organizations SET held_since = '2026-01-01T00:00:00.000Z', held_reason = 'refused'",
    ]) {
      workspace.change(change)
      codes.push((await workspace.run(['status', '--check', '--max-age', '1d'])).code)
    }

    expect(codes).toEqual([1, 5, 3])
    expect((await workspace.run(['status'])).code).toBe(0)
  })
})

describe.concurrent('status --fresh', () => {
  it('exits with 1, and says which list, where nothing says how fresh it is', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    // A mirror that says nothing of it, whatever this version's view has.
    workspace.change(`DROP VIEW sync_status;
      CREATE VIEW sync_status AS SELECT job.organization_id, 'acme' AS organization, job.collection, job.rows,
        '2026-01-01T00:00:00.000Z' AS as_of, NULL AS last_complete_at, NULL AS coverage, NULL AS expected_missed,
        NULL AS fresh_as_of FROM sync_jobs AS job`)

    const { code, stdout } = await workspace.run(['status', '--fresh', '5m'])
    const wrong = await workspace.run(['status', '--fresh', 'soon'])

    expect(code).toBe(1)
    expect(stdout).toMatch(/acme orders.*\n {4}too stale: .* --fresh is 5m\n/)
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--fresh soon') })
  })

  it('goes by fresh_as_of, where the mirror has it', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    const [job] = workspace.rows<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE name = 'sync_status'")
    const now = new Date().toISOString()
    workspace.change(
      `DROP VIEW sync_status; ${(job?.sql ?? '')
        .replaceAll(/^.*AS (fresh_as_of|newest),?$/gm, '')
        .replace('job.rows,', `job.rows, '${now}' AS fresh_as_of, 'first' AS newest,`)}`,
    )

    const { code } = await workspace.run(['status', '--fresh', '1h'])
    const old = await workspace.run(['status', '--fresh', '1ms'])

    expect([code, old.code]).toEqual([0, 1])
    expect(old.stdout).toContain(`too stale: its newest rows are those of ${now}, and --fresh is 1ms`)
  })
})

describe('the contract of status --json', () => {
  it('is the schema in the repository, the one that schema prints', async () => {
    const { stdout } = await createWorkspace().run(['schema', 'status'])

    const kept = fs.readFileSync(path.resolve(import.meta.dirname, '../../config/status.schema.json'), 'utf8')
    expect(JSON.parse(stdout)).toEqual(JSON.parse(kept))
  })

  it('holds before the first sync, during one and after one, and names every field', async () => {
    const door = createDoor()
    const server = await serve(async (asked) => {
      if (asked.page === 4) await door.opened
      return pageOf(items(8), asked)
    })
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], ...YEARLY })
    const told = [await statusOf(workspace)]
    const backfill = workspace.start(['backfill', '--org', 'acme', '--from-page', '2'])
    await server.arrival(({ page }) => page === 4)
    await written(workspace, 4)
    told.push(await statusOf(workspace))
    door.open()
    await backfill.ended
    told.push(await statusOf(workspace))

    for (const status of told) {
      expect(StatusSchema.parse(status)).toEqual(status)
    }
    expect(told[1]?.jobs[0]?.backfills).toHaveLength(1)
    expect(z.toJSONSchema(StatusSchema)).toMatchObject({ properties: { version: { const: 1 } } })
  })
})
