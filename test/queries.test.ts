import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { duckdb } from './helpers/duckdb.ts'
import { OUTSIDE_READERS } from './helpers/outside-readers.ts'
import { createWorkspace } from './helpers/workspace.ts'

// config/QUERIES.md: each query answers as it says there, on a snapshot and on the mirror; its lines for other tools run.

const FILE = path.resolve(import.meta.dirname, '../config/QUERIES.md')
const TEXT = fs.readFileSync(FILE, 'utf8')
const QUESTIONS = [...TEXT.matchAll(/^```sql\n(.*?)^```\n```\n(.*?)^```\n/gms)].map(
  ([, sql = '', answer = '']) => ({ sql, answer }),
)

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

beforeAll(async () => {
  await syncSandbox(1000, 1)
  // As if three orders had been read before they were delivered.
  workspace.change(
    `UPDATE orders_json SET _json = replace(_json, '"state":"delivered"', '"state":"shipped"')
     WHERE _row IN (SELECT _row FROM orders WHERE id < 1023)`,
  )
  await syncSandbox(998, 2)
  expect(await workspace.run(['snapshot', 'shop.db', '--config', 'sandbox.yaml'])).toMatchObject({ code: 0 })
})

describe('the questions of analysts', () => {
  it('are ten', () => {
    expect(QUESTIONS).toHaveLength(10)
  })

  describe.each(['shop.db', 'sandbox-mirror.db'])('on %s', (file) => {
    it.each(QUESTIONS)('have the answer that is shown: $sql', async ({ sql, answer }) => {
      const { stdout, stderr } = await workspace.run(['query', sql, '--database', file])

      expect({ stdout, stderr }).toEqual({ stdout: answer, stderr: '' })
    })

    // JDBC and DuckDB take an untyped column for NUMERIC or BLOB.
    it('every column of a table or view has a type', () => {
      const reader = new Database(workspace.file(file), { readonly: true })
      const untyped = reader
        .prepare(
          `SELECT a.name, b.name FROM sqlite_schema a, pragma_table_info(a.name) b
           WHERE a.name NOT LIKE 'sqlite%' AND b.type NOT IN ('INTEGER', 'REAL', 'TEXT', 'INT')`,
        )
        .raw()
        .all()
      reader.close()

      expect(untyped).toEqual([])
    })
  })

  it('that are typed with a parameter run', async () => {
    const typed = [...TEXT.matchAll(/^\$ admin-mirror query '([^']*)' --param last=0 --format (\w+)/gm)]
    expect(typed).toHaveLength(2)
    for (const [, sql = '', format = ''] of typed) {
      const options = ['--param', 'last=0', '--format', format, '--database', 'shop.db']

      expect(await workspace.run(['query', sql, ...options])).toMatchObject({ code: 0, stderr: '' })
    }
  })
})

describe('the lines for other tools', () => {
  it.for([
    ['the sqlite3 shell', 'sh', /^\$ (sqlite3 .*)$/m, /delivered +│ \d+ /],
    ["Python's sqlite3", 'python3', /^```python\n(.*?)^```/ms, /^cancelled \d+$/m],
  ] as const)('run in %s', ([name, program, place, says], { skip }) => {
    skip(!OUTSIDE_READERS.some((reader) => reader.name === name), 'it is not installed')
    const [, lines = ''] = place.exec(TEXT) ?? []

    expect(execFileSync(program, ['-c', lines], { cwd: workspace.folder, encoding: 'utf8' })).toMatch(says)
  })

  it('run in DuckDB, on an export', async () => {
    const [, sql = ''] = /^\$ duckdb -c "(.*)"$/m.exec(TEXT) ?? []
    const intoFile = ['sh', '-c', 'exec "$@" > orders.parquet', 'sh']
    const typed = 'export orders --format parquet --database shop.db'.split(' ')
    expect(await workspace.run(typed, { through: intoFile })).toMatchObject({ code: 0 })

    const rows = await duckdb(workspace.file, sql)

    expect(rows.map(([currency]) => currency)).toEqual(['EUR', 'PLN', 'USD'])
  })
})
