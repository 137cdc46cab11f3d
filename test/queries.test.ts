import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { OUTSIDE_READERS } from './helpers/outside-readers.ts'
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
})
