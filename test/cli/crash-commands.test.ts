import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Patch, patchedBy } from '../helpers/patch.ts'
import { DIE, SMALL_BATCHES } from '../helpers/planted.ts'
import { countingStatements, statementsTold, TELLING_STATEMENTS } from './counting-statements.ts'
import { copyOf } from './crash-scene.ts'
import { pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// What takes away and makes anew dies behind some of the statements that it writes with, and is typed again.
// `STATEMENTS=all vitest run ...` has it die behind each.

const DEATHS = process.env.STATEMENTS === 'all' ? Number.POSITIVE_INFINITY : 4

const ORGANIZATIONS = [organization('acme', 1), organization('globex', 2)]

/** Of these the first six left the list of acme, which is a little more than the brake lets go. */
const ORDERS = Array.from({ length: 15 }, (_, index) => ({ id: index + 1, note: `note ${index + 1}` }))

const server = await serve((asked) => {
  const isShort = asked.path.startsWith('/later/') && asked.organization === ORGANIZATIONS[0]?.id
  return pageOf(isShort ? ORDERS.slice(6) : ORDERS, asked, { perPage: 5 })
})

function configure(workspace: Workspace, time: string): void {
  const removals = { brakePercent: 20, brakeRows: 5 }
  workspace.configure({ baseUrl: `${server.url}${time}`, organizations: ORGANIZATIONS, removals })
}

/** A mirror in which six rows of acme are held back, and some typed rows are not what their raw ones say. */
async function prepare(): Promise<Workspace> {
  const workspace = createWorkspace()
  configure(workspace, '/first')
  await workspace.run(['sync'])
  configure(workspace, '/later')
  await workspace.run(['sync', '--accept-address'])
  const { code } = await workspace.run(['sync'])
  expect(code).toBe(5)
  workspace.change("UPDATE orders SET note = 'by hand' WHERE id > 8; DELETE FROM orders WHERE id = 7")
  return workspace
}

const prepared = await prepare()

/** The prepared mirror, in a folder of its own. */
function copyPrepared(): Workspace {
  const workspace = createWorkspace()
  configure(workspace, '/later')
  fs.copyFileSync(prepared.mirror, workspace.mirror)
  return workspace
}

const patched = (...patches: Patch[]) => ({ env: patchedBy(...patches, ...SMALL_BATCHES) })

/**
 * Up to so many numbers, as far from each other as they can be. Another life may take fewer statements: the last of them are
 * not counted on.
 */
function spread(total: number): number[] {
  const certain = Math.floor(total * 0.8)
  const many = Math.min(certain, DEATHS)
  return Array.from({ length: many }, (_, index) => Math.ceil(((index + 0.5) * certain) / many))
}

/** All that people see, but for times and for who did it. */
function seen({ rows }: Workspace): unknown {
  return {
    raw: rows('SELECT _organization_id, id, _json FROM orders_raw ORDER BY 1, 2'),
    typed: rows('SELECT _organization_id, id, note FROM orders ORDER BY 1, 2'),
    history: rows('SELECT _organization_id, id, _json, _reason FROM orders_history ORDER BY 1, 2'),
    jobs: rows('SELECT organization_id, rows, removals_held, owner FROM sync_jobs ORDER BY 1'),
    missing: rows('SELECT organization_id, key, state FROM sync_missing ORDER BY 1, 2'),
    ledger: rows('SELECT DISTINCT organization_id FROM sync_walks ORDER BY 1'),
  }
}

describe.each([
  ['forget', ['forget', '--org', 'acme', '--yes']],
  ['rebuild', ['rebuild', 'orders']],
  ['a sync that removes what was held back', ['sync', '--org', 'acme', '--accept-removals']],
])('%s', async (_name, command) => {
  const undisturbed = copyPrepared()
  const { code, stderr } = await undisturbed.run(command, patched(TELLING_STATEMENTS))
  expect(code, stderr).toBe(0)

  it.concurrent.each(spread(statementsTold(stderr)))(
    'that dies behind statement %i ends as if it had lived, when it is typed again',
    async (count) => {
      const workspace = copyPrepared()

      const dead = await workspace.run(command, patched(countingStatements(`if (count === ${count}) ${DIE}`)))
      const copy = copyOf(workspace)
      copy.close()
      const again = await workspace.run(command)

      expect({ signal: dead.signal, integrity: copy.integrity }).toEqual({
        signal: 'SIGKILL',
        integrity: 'ok',
      })
      expect(again.code, again.stderr).toBe(0)
      expect(seen(workspace)).toEqual(seen(undisturbed))
    },
  )
})
