import Database from 'better-sqlite3'
import type { Bench, Scenario } from '../bench.ts'
import { createMirror } from '../mirrors.ts'
import { idOnDemand } from '../pages.ts'
import { interleaved } from '../rounds.ts'
import type { Row } from '../row.ts'
import { whileServing } from '../serving.ts'
import { largeMirror } from './large-mirror.ts'

/** What analysts ask, of a mirror as large as they come. */
export const queries: Scenario = {
  name: 'queries',
  run: async (bench) => {
    const { large } = bench.sizes
    if (large === null) return []
    const { mirror } = await largeMirror(bench)
    const named = typicalQueries(idOnDemand(Math.floor(large.orders / 2)), lastChange(mirror.file))
    const rows = await timeQueries(
      bench,
      mirror.file,
      named,
      `of ${large.orders.toLocaleString('en')} orders`,
    )
    return [...rows, ...(await statusRows(bench, large))]
  },
}

/** What is asked by its name; `id`: an order in the middle, `moment`: when the last page came. */
function typicalQueries(id: number, moment: string): Record<string, string> {
  return {
    'orders a day': 'SELECT date(created_at) AS day, count(*) FROM orders GROUP BY day',
    'the latest 100': 'SELECT * FROM orders ORDER BY created_at DESC LIMIT 100',
    'worth by state': 'SELECT state, count(*), sum(total_cents) FROM orders GROUP BY state',
    'one order by its key': `SELECT * FROM orders WHERE ${ORGANIZATION} AND id = ${id}`,
    'line items of one order': `
      SELECT o.number, i.sku, i.quantity
      FROM orders AS o
      JOIN orders__items AS i ON i._organization_id = o._organization_id AND i._parent_id = o.id
      WHERE o.${ORGANIZATION} AND o.id = ${id}`,
    'sold by product': 'SELECT sku, sum(quantity) FROM orders__items GROUP BY sku',
    'changed since the last page': `SELECT number, state FROM orders WHERE _changed_at >= '${moment}'`,
    'the 20 best customers':
      'SELECT customer__email, sum(total_cents) AS worth FROM orders GROUP BY 1 ORDER BY worth DESC LIMIT 20',
    'orders by organization': `
      SELECT organizations.name, count(*)
      FROM orders JOIN organizations ON organizations.id = orders._organization_id
      GROUP BY 1`,
    'what one order was before': `SELECT _valid_from, _json FROM orders_history WHERE ${ORGANIZATION} AND id = ${id}`,
  }
}

const ORGANIZATION = '_organization_id = (SELECT id FROM organizations)'

async function statusRows(
  bench: Bench,
  large: { orders: number; organizations: number },
): Promise<readonly Row[]> {
  const { organizations } = large
  const orders = Math.ceil(large.orders / organizations)
  bench.tell(`  filling a mirror of ${organizations} organizations with ${orders} orders each`)
  return whileServing({ orders, onDemand: true }, async ({ url }) => {
    const mirror = createMirror({ folder: bench.newFolder(), url, organizations, concurrency: 16 })
    await mirror.sync(organizations * orders)
    const what = `of ${organizations} organizations, ${(organizations * orders).toLocaleString('en')} orders`
    return timeQueries(bench, mirror.file, { sync_status: 'SELECT * FROM sync_status' }, what)
  })
}

function lastChange(file: string): string {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare('SELECT max(_changed_at) FROM orders').pluck().get() as string
  } finally {
    connection.close()
  }
}

/** Each against a look at every row of the typed table, which is what an index or a plan may save. */
const SCAN = 'SELECT sum(total_cents) FROM orders'

async function timeQueries(
  bench: Bench,
  file: string,
  named: Readonly<Record<string, string>>,
  what: string,
): Promise<Row[]> {
  const { large, rounds } = bench.sizes
  const connection = new Database(file, { readonly: true })
  const timed = async (sql: string) => {
    const began = performance.now()
    connection.prepare(sql).all()
    return performance.now() - began
  }
  const contenders = Object.fromEntries(
    Object.entries({ ...named, scan: SCAN }).map(([name, sql]) => [name, () => timed(sql)]),
  )
  const count = large?.rounds ?? rounds
  const times = await interleaved(count, contenders, (round) =>
    bench.tell(`  queries, round ${round} of ${count}`),
  )
  connection.close()
  return Object.keys(named).map((name) => ({
    scenario: 'queries',
    what: `${name} ${what}`,
    unit: 'ms',
    ours: times[name] ?? [],
    against: 'sum of one column',
    others: times.scan ?? [],
  }))
}
