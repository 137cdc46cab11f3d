import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { pageOf, serve } from '../helpers/list-server.ts'
import type { LogLine } from '../helpers/processes.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// The process that makes the published file dies, alone, with the one that started it, or by Ctrl-C: the old file stays, whole, and
// nothing is left that grows. Every place at which it can die: test/store/sqlite/publish/deaths.test.ts.

const COPY = 'published/copy.db'
const WHOLE = ['copy.db', 'copy.db.json']

/** With the rows in the copy; the statement is told to nobody else. */
const AT_WORK = '^ANALYZE$'

function orders(count: number, value: string) {
  return Array.from({ length: count }, (_, index) => ({ id: index + 1, value }))
}

/** A published file of six orders, of a list that has changed since. */
async function createScene() {
  const list = { items: orders(6, 'old') }
  const server = await serve((asked) => pageOf(list.items, asked))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    publish: COPY,
  })
  const copy = workspace.file(COPY)
  const folder = path.dirname(copy)
  await workspace.run(['sync'])
  expect(left(folder)).toEqual(WHOLE)
  list.items = orders(6, 'new')
  return { workspace, copy, folder, before: fs.readFileSync(copy) }
}

function left(folder: string): string[] {
  return fs.readdirSync(folder).toSorted()
}

function warnings(logs: readonly LogLine[]): unknown[] {
  return logs.filter(({ level }) => level !== 'info').map(({ level, msg }) => [level, msg])
}

const NOT_PUBLISHED = [['warn', 'not published; the old copy stays, if there is one']]

/** The next sync publishes, and the numbers are those of the file. */
async function expectNextCopy(workspace: Workspace, folder: string): Promise<void> {
  const { code, logs } = await workspace.run(['sync'])
  expect([code, warnings(logs)]).toEqual([0, []])
  expect(left(folder)).toEqual(WHOLE)
  const copy = path.join(folder, 'copy.db')
  const { sha256 } = JSON.parse(fs.readFileSync(`${copy}.json`, 'utf8'))
  expect(sha256).toBe(createHash('sha256').update(fs.readFileSync(copy)).digest('hex'))
  const connection = new Database(copy, { readonly: true })
  expect(connection.prepare('SELECT DISTINCT value FROM orders').pluck().all()).toEqual(['new'])
  connection.close()
}

describe.concurrent('a process that is killed while it publishes', () => {
  it('leaves the old file and nothing else, and the sync goes on', async () => {
    const { workspace, copy, folder, before } = await createScene()

    const { code, logs } = await workspace.run(['sync'], { env: faultsOf({ at: AT_WORK, does: 'die' }) })

    expect([code, warnings(logs)]).toEqual([0, NOT_PUBLISHED])
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    expect(left(folder)).toEqual(WHOLE)
    expect(fs.readdirSync(`${workspace.mirror}-owners`)).toEqual([])
    await expectNextCopy(workspace, folder)
  })

  it('with the sync that began it leaves what the next one clears away', async () => {
    const { workspace, copy, folder, before } = await createScene()

    const dying = faultsOf({ at: AT_WORK, does: 'die-with-parent' })
    const { signal } = await workspace.run(['sync'], { env: dying })

    expect(signal).toBe('SIGKILL')
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    await expectNextCopy(workspace, folder)
  })

  it('by Ctrl-C of a snapshot leaves nothing beside its file', async () => {
    const { workspace, folder } = await createScene()
    const halted = faultsOf({ at: AT_WORK, does: { says: 'at work', until: '/never' } })
    const snapshot = workspace.start(['snapshot', 'published/other.db'], { env: halted })
    await snapshot.log(({ msg }) => msg === 'at work')
    expect(left(folder).length).toBeGreaterThan(WHOLE.length)

    snapshot.kill('SIGINT')

    expect((await snapshot.ended).code).toBe(130)
    expect(left(folder)).toEqual(WHOLE)
  })
})
