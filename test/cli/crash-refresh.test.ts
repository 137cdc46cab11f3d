import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { DIE } from '../helpers/planted.ts'
import { countingStatements, statementsTold, TELLING_STATEMENTS } from './counting-statements.ts'
import { copyOf } from './crash-scene.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// A refresh dies behind one of all the statements that write to the mirror: what it has not read the next one reads. Some of
// them here; `STATEMENTS=all vitest run ...` has it die behind each.

const EVERY = process.env.STATEMENTS === 'all' ? 1 : 11

const KNOWN = 40
const NEW = 30

/** Newest first; the new ones come with `grown`. */
const grown = items(KNOWN + NEW).toReversed()
const before = grown.slice(NEW)

let list = before
const server = await serve((asked) => pageOf(list, asked, { perPage: 5 }))

function configured(): Workspace {
  const workspace = createWorkspace()
  workspace.configure({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  return workspace
}

/** A mirror that has every row but the new ones. */
async function prepare(): Promise<Workspace> {
  const workspace = configured()
  const { code, stderr } = await workspace.run(['sync'])
  expect(code, stderr).toBe(0)
  list = grown
  return workspace
}

const prepared = await prepare()

function copyPrepared(): Workspace {
  const workspace = configured()
  fs.copyFileSync(prepared.mirror, workspace.mirror)
  return workspace
}

function seen({ rows, value }: Workspace): unknown {
  return {
    ids: rows('SELECT id FROM orders ORDER BY id').map(({ id }) => id),
    walks: rows('SELECT status, pages, rows_seen FROM sync_walks'),
    added: value("SELECT rows_added FROM sync_jobs WHERE collection = 'orders'"),
    counted: value("SELECT sum(rows_added) FROM sync_runs WHERE collection = 'orders'"),
    missing: rows('SELECT key FROM sync_missing'),
    running: value("SELECT count(*) FROM sync_runs WHERE status = 'running'"),
    isFresh: value("SELECT fresh_as_of > as_of FROM sync_status WHERE collection = 'orders'"),
  }
}

const REFRESH = ['sync', '--collection', 'orders', '--refresh']

describe('sync --refresh', async () => {
  const undisturbed = copyPrepared()
  const { code, stderr } = await undisturbed.run(REFRESH, { env: patchedBy(TELLING_STATEMENTS) })
  expect(code, stderr).toBe(0)
  const total = statementsTold(stderr)
  const chosen = Array.from({ length: total }, (_, index) => index + 1).filter((count) => count % EVERY === 0)

  it('reads all that is new', () => {
    const ids = Array.from({ length: KNOWN + NEW }, (_, index) => index + 1)
    expect(seen(undisturbed)).toMatchObject({ ids, isFresh: 1, missing: [], running: 0 })
    expect(total).toBeGreaterThan(30)
  })

  it.concurrent.each(chosen)(
    'that dies behind statement %i leaves no gap that the next one does not read',
    async (count) => {
      const workspace = copyPrepared()

      const dead = await workspace.run(REFRESH, {
        env: patchedBy(countingStatements(`if (count === ${count}) ${DIE}`)),
      })
      const copy = copyOf(workspace)
      copy.close()
      const again = await workspace.run(REFRESH)

      expect({ signal: dead.signal, integrity: copy.integrity }).toEqual({
        signal: 'SIGKILL',
        integrity: 'ok',
      })
      expect(again.code, again.stderr).toBe(0)
      expect(seen(workspace)).toEqual(seen(undisturbed))
    },
  )
})
