import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { OUTSIDE_READERS } from './helpers/outside-readers.ts'
import { runs } from './helpers/system.ts'
import { createWorkspace } from './helpers/workspace.ts'

// config/QUERIES.md: each query answers as it says there, on the published file and on the mirror; its lines for other tools run.

const TEXT = fs.readFileSync(path.resolve(import.meta.dirname, '../config/QUERIES.md'), 'utf8')
const QUESTIONS = [...TEXT.matchAll(/^```sql\n(.*?)^```\n(?:```\n(.*?)^```\n)?/gms)].map(
  ([, sql = '', answer = 'no answer is shown']) => ({ sql, answer }),
)
const MIDNIGHT = '2025-01-03T00:00:00+01:00'

const workspace = createWorkspace(undefined, 'sandbox-mirror.db')

async function syncSandbox(orders: number, syncs: number): Promise<void> {
  const made = `--orders ${orders} --requests-per-minute 0 --write-config sandbox.yaml`
  const sandbox = workspace.start(['sandbox', ...made.split(' ')])
  await sandbox.firstLine()
  for (let count = 0; count < syncs; count++) {
    const ended = await workspace.run(['sync', '--quiet', '--accept-address', '--config', 'sandbox.yaml'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
  }
  sandbox.kill('SIGTERM')
  await sandbox.ended
}

async function plan(sql: string): Promise<string> {
  const typed = ['query', `EXPLAIN QUERY PLAN ${sql}`, '--database', 'shop.db', '--format', 'csv']
  return (await workspace.run(typed)).stdout
}

/** What a block of another language or tool says to type. */
function lines(pattern: RegExp): string[] {
  return [...TEXT.matchAll(pattern)].map(([, line = '']) => line)
}

const inShop = (program: string, ...options: string[]) =>
  execFileSync(program, options, {
    cwd: workspace.folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })

/** With the CSV that the lines for spreadsheets export. */
async function exportCsv(): Promise<void> {
  const [line = ''] = lines(/^\$ admin-mirror (export .* --bom .*)$/gm)
  expect(await workspace.run(line.split(' '))).toMatchObject({ code: 0 })
}

beforeAll(async () => {
  await syncSandbox(1000, 1)
  // As if three orders had been read before they were delivered.
  workspace.change(
    `UPDATE orders_raw SET _json = replace(_json, '"state":"delivered"', '"state":"shipped"') WHERE id < 1010`,
  )
  await syncSandbox(998, 2)
  expect(await workspace.run(['snapshot', 'shop.db', '--config', 'sandbox.yaml'])).toMatchObject({ code: 0 })
})

describe('the questions of analysts', () => {
  it('are fifteen', () => {
    const numbers = [...TEXT.matchAll(/^### (\d+)\. /gm)].map(([, number]) => Number(number))

    expect(numbers).toEqual(Array.from({ length: 15 }, (_, index) => index + 1))
    expect(QUESTIONS.length).toBeGreaterThanOrEqual(15)
  })

  describe.each(['shop.db', 'sandbox-mirror.db'])('on %s', (file) => {
    it.each(QUESTIONS)('have the answer that is shown: $sql', async ({ sql, answer }) => {
      const { stdout, stderr } = await workspace.run(['query', sql, '--database', file])

      expect({ stdout, stderr }).toEqual({ stdout: answer, stderr: '' })
    })
  })

  /** The statements that are typed with a time zone. */
  const zoned = [
    ...TEXT.matchAll(/^\$ TZ=Europe\/Berlin admin-mirror query "([^"]*?)" --database shop\.db$/gm),
  ].map(([, sql = '']) => sql)

  it('add up what was sold on each day of a time zone', async () => {
    const [sql = ''] = zoned
    const worth = async (hours: number) => {
      const through = ['env', `TZ=Here${-hours}`]
      const typed = ['query', sql, '--database', 'shop.db', '--format', 'json']
      const { stdout } = await workspace.run(typed, { through })
      return JSON.parse(stdout) as { day: string; currency: string; worth: string }[]
    }
    const [berlin, utc] = [await worth(1), await worth(0)]
    const cents = (days: typeof utc) =>
      days.reduce((sum, line) => sum + Math.round(Number(line.worth) * 100), 0)

    expect(berlin).not.toEqual(utc)
    expect(cents(berlin)).toBe(cents(utc))
    expect(cents(utc)).toBeGreaterThan(0)
  })

  it('count what came today in a time zone, as far as the list is known', async () => {
    const [, sql = ''] = zoned
    // Noon is far from the next day, whenever the test runs.
    const ahead = 12 - new Date().getUTCHours()
    const midnight = Date.now() - (Date.now() % 3_600_000) - 12 * 3_600_000
    const noon = new Date(midnight + 12 * 3_600_000).toISOString()
    const today = (minutes: number) => new Date(midnight + minutes * 60_000).toISOString()
    fs.copyFileSync(workspace.file('shop.db'), workspace.file('today.db'))
    const shop = new Database(workspace.file('today.db'))
    shop.exec(`UPDATE sync_status SET fresh_as_of = iif(organization = 'acme', '${noon}', NULL)`)
    const place = 'FROM orders JOIN organizations AS o ON o.id = _organization_id WHERE o.name = ?'
    const ids = shop.prepare(`SELECT orders.id ${place} ORDER BY orders.id LIMIT 4`).pluck().all('acme')
    const move = shop.prepare(`UPDATE orders SET created_at = ? WHERE id = ?`)
    for (const [index, minutes] of [-1, 0, 719, 721].entries()) move.run(today(minutes), ids[index])
    shop.close()
    // What stands behind the name is how far it is behind UTC.
    const through = ['env', `TZ=Here${-ahead}`]
    const { stdout, stderr } = await workspace.run(
      ['query', sql, '--database', 'today.db', '--format', 'csv'],
      { through },
    )

    expect({ stdout, stderr }).toEqual({
      stdout: `organization,fresh_as_of,today\nacme,${noon},2\nglobex,,\n`,
      stderr: '',
    })
  })

  it('find orders between two instants by an index of the published file', async () => {
    const sql = QUESTIONS.map((question) => question.sql).find((text) => text.includes(MIDNIGHT)) ?? ''

    expect(await plan(sql)).toMatch(/SEARCH orders USING .*created_at>\? AND created_at<\?/)
    expect(await plan(sql.replace(/created_at >= '.*?\n {2}AND/, ''))).toMatch(/SCAN orders/)
  })

  it('find the best customers without reading the table of orders', async () => {
    const sql =
      QUESTIONS.map((question) => question.sql).find((text) => text.includes('customer__email')) ?? ''

    expect(await plan(sql)).toMatch(/orders USING COVERING INDEX _orders_by_customer__email/)
  })
})

describe('the lines for other tools', () => {
  const byState = 'cancelled 181\ndelivered 879\npaid 372\npending 191\nshipped 373\n'

  it.runIf(OUTSIDE_READERS.some(({ name }) => name === 'the sqlite3 shell'))('run in sqlite3', () => {
    const [box = '', csv = ''] = lines(/^\$ (sqlite3 .*)$/gm)
    const run = (line: string) =>
      execFileSync('sh', ['-c', line], { cwd: workspace.folder, encoding: 'utf8' })

    expect(run(box)).toMatch(/delivered +│ 879 /)
    run(csv)
    expect(fs.readFileSync(workspace.file('items.csv'), 'utf8')).toMatch(
      /^_organization_id,_parent_id,_index,/,
    )
  })

  it.runIf(OUTSIDE_READERS.some(({ name }) => name.startsWith('Python')))('run in Python', () => {
    const [program = ''] = lines(/^```python\n(.*?)^```/gms)

    expect(execFileSync('python3', ['-c', program], { cwd: workspace.folder, encoding: 'utf8' })).toBe(
      byState,
    )
  })

  it.runIf(runs('/usr/bin/python3', '-c', 'import pandas'))(
    'run in pandas',
    { timeout: 60_000 },
    async () => {
      await exportCsv()
      const [, program = ''] = lines(/^```python\n(.*?)^```/gms)
      const shown = `
print(orders['total'].iloc[0], orders['customer__address__zip'].iloc[0], orders['reference_number'].iloc[0], len(orders))`
      const isOld = `import pandas; raise SystemExit(0 if int(pandas.__version__.split('.')[0]) < 2 else 1)`
      const text = runs('/usr/bin/python3', '-c', isOld) ? program.replace(", format='ISO8601'", '') : program

      expect(inShop('/usr/bin/python3', '-c', text + shown)).toBe('46.00 06381 51750063520500000000 1996\n')
    },
  )

  it.runIf(runs('Rscript', '-e', 'library(RSQLite); library(bit64)'))(
    'run in R',
    { timeout: 60_000 },
    async () => {
      await exportCsv()
      const [program = ''] = lines(/^```r\n(.*?)^```/gms)
      const shown =
        'cat(orders$total[1], orders$customer__address__zip[1], orders$reference_number[1], nrow(orders))'

      const output = inShop('Rscript', '-e', program + shown)

      expect(output).toMatch(/delivered +879/)
      expect(output).toMatch(/46\.00 06381 51750063520500000000 1996$/)
    },
  )

  it.runIf(runs('soffice', '--version'))('run in LibreOffice', { timeout: 120_000 }, async () => {
    await exportCsv()
    const columns = Array.from({ length: 36 }, (_, index) => `${index + 1}/2`).join('/')
    const csv = 'Text - txt - csv (StarCalc):44,34,76,1'
    const converted = (types: string) => {
      const output = ['--convert-to', `csv:${csv},,0,false,true,false`, '--outdir', 'calc', 'orders.csv']
      inShop(
        'soffice',
        `-env:UserInstallation=file://${workspace.file('office')}`,
        '--headless',
        `--infilter=${csv}${types}`,
        ...output,
      )
      return fs.readFileSync(workspace.file('calc/orders.csv'), 'utf8')
    }

    expect(converted(`,${columns}`)).toMatch(/,51750063520500000000,ORD-000001,.*,46\.00,4600,.*,06381,/)
    expect(converted('')).toMatch(/,5\.17500635205E\+019,ORD-000001,.*,46,4600,.*,6381,/)
  })

  it('run in DuckDB, on an export', async () => {
    const [sql = ''] = lines(/^\$ duckdb -c "(.*)"$/gm)
    const [ofChanges = ''] = lines(/^\$ duckdb -c '(.*)'$/gm)
    for (const line of lines(/^\$ admin-mirror (export .*)$/gm)) {
      expect(await workspace.run(line.split(' '))).toMatchObject({ code: 0 })
    }
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    const reader = await connection.runAndReadAll(
      sql.replace("'orders.parquet'", `'${workspace.file('orders.parquet')}'`),
    )
    const changes = await connection.runAndReadAll(
      ofChanges.replace('"changes.parquet"', `"${workspace.file('changes.parquet')}"`),
    )
    const events = workspace.rows<{ change: string; events: number }>(
      'SELECT change, count(*) AS events FROM orders_changes GROUP BY change ORDER BY change',
    )
    const [{ cents } = {}] = workspace.rows<{ cents: number }>(
      `SELECT sum(total_cents) AS cents FROM orders WHERE currency = 'EUR' AND datetime(created_at) >= datetime('${MIDNIGHT}')`,
    )

    expect(reader.getRowsJson().map(([currency]) => currency)).toEqual(['EUR', 'PLN', 'USD'])
    expect(reader.getRowsJson()[0]?.[1]).toBe(((cents ?? 0) / 100).toFixed(2))
    expect(changes.getRowsJson().map(([change, count]) => ({ change, events: Number(count) }))).toEqual(
      events,
    )
    expect(fs.readFileSync(workspace.file('orders.csv'), 'utf8').startsWith('\u{feff}')).toBe(true)
  })
})
