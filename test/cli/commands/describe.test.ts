import { beforeAll, describe, expect, it } from 'vitest'
import { readPieces } from '../../../src/cli/file/reading.ts'
import { pageOf } from '../../helpers/list-server.ts'
import { ACME, createScene } from '../../helpers/scene.ts'
import type { Workspace } from '../../helpers/workspace.ts'

const ITEMS = [
  '{"id":1,"state":"paid","price":1.5,"big":9223372036854775807,"customer":{"e mail":"a@x"},"note":"\\u001b[31m","items":[{"n":1}]}',
  '{"id":2,"state":"paid","price":20,"big":null,"customer":{"e mail":"b@x"},"note":null,"items":[]}',
  '{"id":3,"state":"open","price":3,"big":5,"customer":null,"note":null,"items":[]}',
]

interface Column {
  column: string
  [field: string]: unknown
}

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene({
    settings: { collections: { establishments: {} } },
    instead: (asked) => {
      const { body } = pageOf([], asked, { total: 3 })
      return { body: JSON.stringify(body).replace('"data":[]', `"data":[${ITEMS.join(',')}]`) }
    },
  }))
  await workspace.run(['sync', '--collection', 'orders'])
})

const described = (...args: string[]) => workspace.run(['describe', ...args])

describe('describe', () => {
  it('says what each column holds', async () => {
    const { code, stdout } = await described('orders', '--json')

    expect(code).toBe(0)
    const [orders] = JSON.parse(stdout).collections
    expect(orders).toMatchObject({
      name: 'orders',
      rows: 3,
      see_also: ['orders__items', 'orders_changes', 'orders_history', 'orders_raw'],
      organizations: [{ organization: 'acme', rows: 3, as_of: expect.any(String), coverage: 'steady' }],
    })
    const columns = new Map((orders.columns as Column[]).map((column) => [column.column, column]))
    expect(columns.get('price')).toEqual({
      column: 'price',
      path: '$.price',
      type: 'REAL',
      nulls: 0,
      null_share: 0,
      distinct: 3,
      distinct_is_exact: true,
      smallest: 1.5,
      largest: 20,
      example: 1.5,
    })
    expect(columns.get('state')).toMatchObject({ distinct: 2, smallest: 'open', largest: 'paid' })
    expect(columns.get('big')).toMatchObject({ nulls: 1, null_share: 1 / 3, distinct: 2, smallest: 5 })
    expect(stdout).toContain('"largest":9223372036854775807')
    expect(columns.get('customer__e mail')).toMatchObject({ path: '$.customer.e mail', nulls: 1 })
    expect(columns.get('_organization_id')).toMatchObject({ path: null, example: ACME.id })
  })

  it('shows a table, and no control character as it is', async () => {
    const { stdout, stderr } = await described('orders')

    expect(stderr).toBe('')
    expect(stdout).toMatch(/^orders: 3 rows\n {2}acme +3 rows {2}as of .* ago\), steady\n/)
    expect(stdout).toMatch(/^note +TEXT +66\.7 % +1 +\\u\{1b\}\[31m/m)
    expect(stdout).not.toContain('\u001b')
  })

  it('describes all collections without a name, also those without rows', async () => {
    const { stdout } = await described('--json')

    const { collections } = JSON.parse(stdout)
    expect(collections.map(({ name, rows }: { name: string; rows: number }) => [name, rows])).toEqual([
      ['establishments', 0],
      ['orders', 3],
    ])
    expect((await described()).stdout).toMatch(/^establishments: 0 rows\n(?:.*\n)+orders: 3 rows/)
  })

  it('describes a view', async () => {
    const { stdout } = await described('orders__items', '--json')

    expect(JSON.parse(stdout).collections[0].columns.at(-1)).toMatchObject({
      column: 'n',
      path: '$.n',
      type: 'INTEGER',
      example: 1,
    })
  })

  it('counts all as of one moment, though the mirror is written meanwhile', async () => {
    const task = {
      database: workspace.mirror,
      isCopy: false,
      isTerminal: false,
      width: null,
      configured: ['establishments', 'orders'],
      work: { kind: 'describe', name: null, json: true, now: 0 },
    } as const
    let written = ''
    for await (const bytes of readPieces(task, () => {})) {
      if (written === '') workspace.change("DELETE FROM orders WHERE state = 'open'")
      written += new TextDecoder().decode(bytes)
    }

    const [, orders] = JSON.parse(written).collections
    expect(orders).toMatchObject({ name: 'orders', rows: 3 })
    expect(orders.columns.find(({ column }: Column) => column === 'price')).toMatchObject({ distinct: 3 })
  })

  it.each(['order', 'sync_runs'])('exits with 2 for what is no collection: %s', async (name) => {
    expect(await described(name)).toMatchObject({ code: 2, stdout: '' })
  })
})
