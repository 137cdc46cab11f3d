import { beforeAll, describe, expect, it } from 'vitest'
import { type Asked, pageOf, serve } from '../helpers/list-server.ts'
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
})
