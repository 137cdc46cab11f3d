import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

type Item = { id: number; [field: string]: unknown }

/** A workspace whose API lists what `list` returns by then. */
async function createScene(list: () => readonly Item[]) {
  const { url } = await serve((asked) => pageOf([...list()], asked))
  return createWorkspace({ baseUrl: url, organizations: [organization('acme', 1)] })
}

const numbered = (count: number, fields: (id: number) => object): Item[] =>
  Array.from({ length: count }, (_, index) => ({ id: index + 1, ...fields(index + 1) }))

describe('an API that begins to send numbers as texts', () => {
  it('shrinks no sum, and what is no number is named until it ends', async () => {
    let items = numbered(20, (id) => ({ total: id * 100, rate: id + 0.5 }))
    const workspace = await createScene(() => items)
    await workspace.run(['sync'])
    const sums = () => workspace.rows('SELECT sum(total) AS total, sum(rate) AS rate FROM orders')
    const before = sums()

    items = numbered(20, (id) => ({ total: `${id * 100}`, rate: `${id}.50` }))
    await workspace.run(['sync'])

    expect(sums()).toEqual(before)
    expect(workspace.value('SELECT _json FROM orders_raw WHERE id = 3')).toContain('"total":"300"')
    expect((await workspace.run(['status'])).stdout).not.toContain('note:')

    items = numbered(20, (id) => ({ total: id === 3 ? 'Secret Value' : `${id * 100}` }))
    await workspace.run(['sync'])

    const notes = [
      'orders.rate: no row of acme has a value any more, after earlier full walks had found some',
      'orders.total: the value of 1 of 20 rows does not fit it and is, as text, in total__text (acme: a text among numbers)',
    ]
    const status = await workspace.run(['status', '--check'])
    expect(status.code).toBe(0)
    expect(status.stdout.match(/(?<=^note: ).*/gm)).toEqual(notes)
    expect(JSON.parse((await workspace.run(['status', '--json'])).stdout)).toMatchObject({ notes })
    const check = await workspace.run(['check', '--offline'])
    expect(check.code).toBe(0)
    expect(check.stdout.match(/(?<=^warn {2}columns {19}).*/gm)).toEqual(notes)
    for (const { stdout } of [status, check]) expect(stdout).not.toContain('Secret Value')

    items = numbered(20, (id) => ({ total: id * 100, rate: null, other: id === 7 ? 1 : null }))
    await workspace.run(['sync'])
    expect((await workspace.run(['status'])).stdout.match(/^note: .*/gm)).toEqual([`note: ${notes[0]}`])
  })
})
