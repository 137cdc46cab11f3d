import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Asked, pageOf, serve } from '../helpers/list-server.ts'
import { LONG } from '../helpers/long.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// An analyst's own copy of a list, brought up to date by what `export --since` says, removals included.

interface Item {
  id: number
  state: string
}

interface Event {
  id: number
  change: string
  at: string
  after: string | null
}

/** What the API lists at each sync. All of it comes in one answer, so that one walk is enough for a removal. */
const LISTS: readonly (readonly Item[])[] = [
  [1, 2, 3].map((id) => ({ id, state: 'open' })),
  [
    { id: 1, state: 'paid' },
    { id: 3, state: 'open' },
    { id: 4, state: 'open' },
  ],
  [
    { id: 2, state: 'open' },
    { id: 3, state: 'paid' },
    { id: 4, state: 'paid' },
  ],
]

let workspace: Workspace
let mirrored: readonly (readonly Item[])[] = []

beforeAll(async () => {
  let list = LISTS[0] ?? []
  const server = await serve((asked: Asked) => pageOf(list, asked, { perPage: 25 }))
  workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    collections: { establishments: false },
    publish: 'published.db',
  })
  for (const next of LISTS) {
    list = next
    await workspace.run(['sync'])
    mirrored = [...mirrored, workspace.rows<Item>('SELECT id, state FROM orders ORDER BY id')]
  }
})

async function exportedSince<T>(name: string, since: string, ...more: string[]): Promise<T[]> {
  const args = ['export', name, '--format', 'ndjson', '--since', since, ...more]
  const { code, stdout } = await workspace.run(args)
  expect(code).toBe(0)
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T)
}

/** When the syncs began, the first one first. */
function moments(): string[] {
  const sql = 'SELECT started_at AS began FROM sync_runs ORDER BY id'
  return workspace.rows<{ began: string }>(sql).map(({ began }) => began)
}

/** `2 returned to` has what it became, `1 removed` has nothing. */
async function eventsSince(time: string): Promise<string[]> {
  const events = await exportedSince<Event>('orders_changes', time)
  return events.map(({ id, change, after }) => `${id} ${change}${after === null ? '' : ' to'}`).toSorted()
}

function applied(copy: readonly Item[], events: readonly Event[]): Item[] {
  const items = new Map(copy.map((item) => [item.id, item]))
  for (const { id, after } of events.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    if (after === null) items.delete(id)
    else items.set(id, JSON.parse(after) as Item)
  }
  return [...items.values()].toSorted((a, b) => a.id - b.id)
}

describe('export --since, where items left the list and came back', () => {
  it.each([
    ['the mirror', []],
    ['the published file', ['--database', 'published.db']],
  ])('of orders_changes brings any earlier copy up to date, from %s', async (_, database) => {
    expect(mirrored).toEqual(LISTS)

    for (const [index, copy] of mirrored.entries()) {
      const since = moments().at(index) ?? ''
      const events = await exportedSince<Event>('orders_changes', since, ...database)

      expect(applied(copy, events)).toEqual(LISTS.at(-1))
    }
  })

  it.each([
    ['the mirror', []],
    ['the published file', ['--database', 'published.db']],
  ])(
    '--since-seq of orders_changes has each event once, whatever was read before, from %s',
    async (_, database) => {
      const eventsAfter = async (seq: number) => {
        const args = [
          'export',
          'orders_changes',
          '--format',
          'ndjson',
          '--since-seq',
          String(seq),
          ...database,
        ]
        const { code, stdout } = await workspace.run(args)
        expect(code).toBe(0)
        return stdout
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Event & { seq: number })
      }
      const all = await eventsAfter(0)
      const seqs = [...new Set(all.map(({ seq }) => seq))]

      // A page and the removals of each walk, in the order in which they were written.
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
      expect(seqs.length).toBeGreaterThan(LISTS.length)
      for (const read of seqs) expect(await eventsAfter(read)).toEqual(all.filter(({ seq }) => seq > read))
      expect(applied([], all)).toEqual(LISTS.at(-1))
    },
  )

  it('of orders_changes has the removals', async () => {
    const [, second = '', third = ''] = moments()
    const last = ['1 removed', '2 returned to', '3 changed to', '4 changed to']
    expect(await eventsSince(third)).toEqual(last)
    expect(await eventsSince(second)).toEqual([...last, '1 changed to', '2 removed', '4 added to'].toSorted())
  })
})

describe('a follower of orders_changes in a file', () => {
  it.runIf(LONG)('misses no event and has none twice beside two processes that write', async () => {
    const asked = new Map<string, number>()
    const server = await serve((one) => {
      const round = (asked.get(one.organization) ?? 0) + 1
      asked.set(one.organization, round)
      return pageOf(
        Array.from({ length: 25 }, (_, index) => ({ id: index + 1, state: String(round) })),
        one,
        { perPage: 25 },
      )
    })
    const own = createWorkspace({
      baseUrl: server.url,
      organizations: Array.from({ length: 4 }, (_, index) => organization(`one-${index}`, index + 1)),
      collections: { establishments: false },
      schedule: '* * * * * *',
      refresh: false,
    })
    await own.run(['sync'])
    const [one, two] = [own.start(['start']), own.start(['start'])]
    const follower = new Database(own.mirror, { readonly: true }).defaultSafeIntegers()
    const sql = 'SELECT seq, _organization_id, id, change, after FROM orders_changes'
    const read: unknown[][] = []
    const poll = () => {
      const last = read.at(-1)?.[0] ?? 0n
      const rows = follower.prepare(`${sql} WHERE seq > ? ORDER BY seq`).raw().all(last)
      read.push(...(rows as unknown[][]))
    }
    const begun = Promise.all(
      [one, two].map((process) => process.logs(({ event }) => event === 'run_finished', 8)),
    )
    const done = new AbortController()
    const following = (async () => {
      while (!done.signal.aborted) {
        poll()
        await sleep(20)
      }
    })()
    await begun
    for (const process of [one, two]) process.killAll('SIGTERM')
    await Promise.all([one.ended, two.ended])
    done.abort()
    await following
    poll()

    const written = follower.prepare(`${sql} ORDER BY seq`).raw().all()
    follower.close()
    // Each process has written pages of 25 events.
    expect(written.length).toBeGreaterThanOrEqual(16 * 25)
    expect(shown(read)).toEqual(shown(written))
  })
})

function shown(events: readonly unknown[]): string[] {
  return events.map((event) => String(event)).toSorted()
}
