import { beforeAll, describe, expect, it } from 'vitest'
import { TELLING_PEAK } from '../helpers/faults.ts'
import type { Fault } from '../helpers/list-server.ts'
import type { Ended } from '../helpers/processes.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'
import { text, withItems } from './answers.ts'
import { type FaultServer, serveFaults } from './fault-server.ts'
import * as flood from './flood.ts'

// Answers that are made to harm: they end with an error that says where, in memory that is bounded, or are mirrored.

/** As much as an answer may have by default. */
const MOST_BYTES = 32 * 1024 * 1024

/** The same value as often as an answer has bytes for it. */
function repeated(value: string): string {
  return `${value},`.repeat((MOST_BYTES - 1000) / (value.length + 1)) + value
}

/** Lists in lists, as deep as an answer has bytes for them. */
function nested(): string {
  const levels = MOST_BYTES / 2 - 10
  return '['.repeat(levels) + ']'.repeat(levels)
}

const TOO_LARGE = /the answer is larger than api\.maxResponseBytes \(33554432 bytes\)$/
const TOO_DEEP = /the answer is nested deeper than 500 levels$/
const TOO_MANY =
  /the answer has [\d,]+ (items|values), too many for api\.maxResponseBytes \(33554432 bytes\)$/

const REFUSED: { name: string; fault: Fault; says: RegExp }[] = [
  { name: 'gzip-bomb', fault: flood.gzipBomb(500), says: TOO_LARGE },
  { name: 'endless-body', fault: flood.endlessBody, says: TOO_LARGE },
  { name: 'deep-lists', fault: text(nested()), says: TOO_DEEP },
  {
    name: 'deep-item',
    fault: withItems(`{"id":0,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
    says: TOO_DEEP,
  },
  { name: 'many-numbers', fault: text(`[${repeated('1')}]`), says: TOO_MANY },
  { name: 'many-elements', fault: text(`[{"id":1,"items":[${repeated('{}')}]}]`), says: TOO_MANY },
]

describe('an answer that is too much', () => {
  const organizations = REFUSED.map(({ name }, index) => organization(name, index + 1))
  const workspace = createWorkspace()
  let server: FaultServer
  let ended: Ended

  beforeAll(async () => {
    const script = REFUSED.map(({ name, fault }) => ({ organization: name, page: 2, fault }))
    server = await serveFaults(script, { organizations })
    workspace.configure({ baseUrl: server.url, organizations })
    ended = await workspace.run(['sync', '--log-level', 'trace'], { env: TELLING_PEAK })
  }, 120_000)

  it.each(REFUSED)('ends its job with BAD_RESPONSE and the page it stands at: $name', ({ name, says }) => {
    const id = organizations.find((one) => one.name === name)?.id

    expect(
      workspace.rows(`
        SELECT error_code, error_message, requests, next_page, sync_walks.status AS walk
        FROM sync_runs
        JOIN sync_walks ON sync_walks.id = walk_id
        WHERE sync_runs.organization_id = '${id}'
      `),
    ).toEqual([
      {
        error_code: 'BAD_RESPONSE',
        error_message: expect.stringMatching(says),
        requests: 2,
        next_page: 2,
        walk: 'open',
      },
    ])
    expect(workspace.value(`SELECT error_message FROM sync_runs WHERE organization_id = '${id}'`)).toContain(
      `${name} orders page 2: `,
    )
  })

  it('leaves memory under control, four of them at the same time', () => {
    expect(ended.code).toBe(1)
    // Measured: 390 MB. Read whole, one of them would take more than a gigabyte.
    expect(ended.logs.find(({ msg }) => msg === 'peak')?.kilobytes).toBeLessThan(800_000)
  })

  it('loses nothing: the next run goes on', async () => {
    server.heal()

    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8 * REFUSED.length)
    expect(
      workspace.rows("SELECT * FROM sync_walks WHERE status <> 'complete' OR coverage <> 'steady'"),
    ).toEqual([])
  })
})
