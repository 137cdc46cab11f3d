import { beforeAll, describe, expect, it } from 'vitest'
import { createScene } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// An analyst's own copy of a list, brought up to date by what `orders_changes` says, removals included.

interface Item {
  id: number
  state: string
}

interface Event {
  id: number
  seq: number
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
  const scene = await createScene({ perPage: 25, settings: { publish: 'published.db' } })
  ;({ workspace } = scene)
  for (const list of LISTS) {
    scene.api.list = list
    await workspace.run(['sync'])
    mirrored = [...mirrored, workspace.rows<Item>('SELECT id, state FROM orders ORDER BY id')]
  }
})

/** The events that this condition is true of. */
async function events(where: string, ...options: string[]): Promise<Event[]> {
  const sql = `SELECT * FROM orders_changes WHERE ${where} ORDER BY seq`
  const { code, stdout } = await workspace.run(['query', sql, '--format', 'ndjson', ...options])
  expect(code).toBe(0)
  const lines = stdout.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Event)
}

/** When the syncs began, the first one first. */
function moments(): string[] {
  const sql = 'SELECT started_at AS began FROM sync_runs ORDER BY id'
  return workspace.rows<{ began: string }>(sql).map(({ began }) => began)
}

function applied(copy: readonly Item[], news: readonly Event[]): Item[] {
  const items = new Map(copy.map((item) => [item.id, item]))
  for (const { id, after } of news.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    if (after === null) items.delete(id)
    else items.set(id, JSON.parse(after) as Item)
  }
  return [...items.values()].toSorted((a, b) => a.id - b.id)
}

describe.each([
  ['the mirror', []],
  ['the published file', ['--database', 'published.db']],
])('the events of %s, where items left the list and came back,', (_, database) => {
  it('since a time bring any earlier copy up to date', async () => {
    expect(mirrored).toEqual(LISTS)

    for (const [index, copy] of mirrored.entries())
      expect(applied(copy, await events(`at >= '${moments().at(index)}'`, ...database))).toEqual(LISTS.at(-1))
  })

  it('after a number come once each, whatever was read before', async () => {
    const all = await events('seq > 0', ...database)
    const seqs = [...new Set(all.map(({ seq }) => seq))]

    // A page and the removals of each walk, in the order in which they were written.
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
    expect(seqs.length).toBeGreaterThan(LISTS.length)
    for (const read of seqs) {
      const later = await events(`seq > ${read}`, ...database)
      expect(later).toEqual(all.filter(({ seq }) => seq > read))
    }
    expect(applied([], all)).toEqual(LISTS.at(-1))
  })
})
