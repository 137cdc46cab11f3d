import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import Database from 'better-sqlite3'
import { createMirror } from './mirrors.ts'
import { type Measured, measure, whileServing } from './processes.ts'
import { type Bench, grouped, newFolder, race, rowsOf } from './rounds.ts'
import type { Row } from './table.ts'

// What readers cost, and what they wait for: a sync beside copies that are made one after another, and questions to the mirror and to the
// published file.

/** Copies are made all the time, though `publishEvery` lets them be rare. */
export function publishing(bench: Bench): Promise<Row[]> {
  const orders = 3 * bench.orders
  return whileServing({ orders, latencyMs: 0 }, async ({ url }) => {
    const folder = newFolder(bench)
    const mirror = createMirror({ url, program: bench.programs.ours, folder })
    await mirror.sync(orders)
    const results = await race(bench, {
      ours: async () => {
        const sync = { isOver: false }
        const copying = (async () => {
          while (!sync.isOver) await mirror.run('snapshot', path.join(folder, 'copy.db'))
        })()
        const measured = await mirror.sync(orders)
        sync.isOver = true
        await copying
        return measured
      },
      'no copies': () => mirror.sync(orders),
    })
    const what = `sync of the same ${grouped(orders)} orders beside copies`
    return rowsOf('publishing', what, 'ms', results, ({ ms }) => ms)
  })
}

const DAY = "created_at >= '2025-01-03' AND created_at < '2025-01-06'"
const EXACT = "datetime(created_at) >= '2025-01-04' AND datetime(created_at) < '2025-01-05'"

const QUESTIONS: Readonly<Record<string, string>> = {
  'the latest 100 orders': 'SELECT * FROM orders ORDER BY created_at DESC LIMIT 100',
  "one day's orders": `SELECT * FROM orders WHERE ${DAY} AND ${EXACT}`,
  'sold by product':
    'SELECT sku, name, sum(quantity), sum(quantity * price) FROM orders__items GROUP BY sku, name',
  'the best customers': `
    SELECT customer__email, currency, count(*), sum(total_cents) AS cents
    FROM orders WHERE state <> 'cancelled' GROUP BY customer__email, currency ORDER BY cents DESC LIMIT 20`,
}

/** Questions to a published file, against the same to the mirror itself. */
export async function queries(bench: Bench): Promise<Row[]> {
  const [mirror, copy] = await filesOf(bench)
  const rows: Row[] = []
  for (const [what, sql] of Object.entries(QUESTIONS)) {
    const results = await race(bench, {
      ours: async () => asked(copy, sql),
      'the mirror': async () => asked(mirror, sql),
    })
    rows.push(...rowsOf('queries', what, 'ms', results, ({ ms }) => ms))
  }
  return rows
}

/** A mirror of the sandbox's orders, no two of which are alike, and a copy of it. */
async function filesOf(bench: Bench): Promise<[mirror: string, copy: string]> {
  const folder = newFolder(bench)
  const [config, copy] = [path.join(folder, 'sandbox.yaml'), path.join(folder, 'copy.db')]
  const program = bench.programs.ours
  const size = ['--orders', String(bench.orders), '--establishments', '40', '--organizations', '1']
  const sandbox = spawn(
    process.execPath,
    [program, 'sandbox', ...size, '--requests-per-minute', '0', '--write-config', config],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  try {
    await once(sandbox.stdout, 'data')
    await measure([program, 'sync', '--config', config])
    await measure([program, 'snapshot', copy, '--config', config])
  } finally {
    sandbox.kill()
  }
  return [path.join(folder, 'sandbox-mirror.db'), copy]
}

/** The time of one statement with all its rows, as a program that has the file open waits for it. */
function asked(file: string, sql: string): Measured {
  const connection = new Database(file, { readonly: true })
  try {
    const began = performance.now()
    const rows = connection.prepare(sql).raw().all()
    return { ms: performance.now() - began, peakKb: Number.NaN, stdout: String(rows.length) }
  } finally {
    connection.close()
  }
}
