import { expect } from 'vitest'
import { sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

interface Item {
  id: number
  state: string
}

interface Event {
  seq: number
  id: number
  at: string
  after: string | null
}

const listOf = (states: Record<number, string>): Item[] =>
  Object.entries(states).map(([id, state]) => ({ id: Number(id), state }))

/** What the API lists at each sync. All of it comes in one answer, so that one walk is enough for a removal. */
const LISTS = [
  listOf({ 1: 'open', 2: 'open', 3: 'open' }),
  listOf({ 1: 'paid', 3: 'open', 4: 'open' }),
  listOf({ 2: 'open', 3: 'paid', 4: 'paid' }),
]

function applied(copy: readonly Item[], news: readonly Event[]): Item[] {
  const items = new Map(copy.map((item) => [item.id, item]))
  for (const { id, after } of news) {
    if (after === null) items.delete(id)
    else items.set(id, JSON.parse(after) as Item)
  }
  return [...items.values()].toSorted((a, b) => a.id - b.id)
}

it.override({ options: { perPage: 25, settings: { publish: 'published.db' } } })

it('a copy that follows orders_changes by seq or by time misses nothing and sees nothing twice, in the mirror and in the published file', async ({
  scene: { workspace, api },
}) => {
  const moments: string[] = []
  for (const list of LISTS) {
    api.list = list
    await workspace.run(['sync'])
    expect(workspace.rows('SELECT id, state FROM orders ORDER BY id')).toEqual(list)
    moments.push(String(workspace.value('SELECT max(started_at) FROM sync_runs')))
  }
  for (const database of [[], ['--database', 'published.db']]) {
    const events = async (where: string): Promise<Event[]> => {
      const sql = `SELECT * FROM orders_changes WHERE ${where} ORDER BY seq`
      const { stdout } = await workspace.run(['query', sql, '--format', 'ndjson', ...database])
      const lines = stdout.split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as Event)
    }
    const all = await events('seq > 0')
    expect(applied([], all)).toEqual(LISTS.at(-1))
    const seqs = [...new Set(all.map(({ seq }) => seq))]
    expect(seqs.length).toBeGreaterThan(LISTS.length)
    for (const read of seqs)
      expect(await events(`seq > ${read}`)).toEqual(all.filter(({ seq }) => seq > read))
    for (const [index, copy] of LISTS.entries())
      expect(applied(copy, await events(`at >= '${moments[index]}'`))).toEqual(LISTS.at(-1))
  }
})
