import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { createWorkspace, type Workspace } from '../../helpers/workspace.ts'
import { NAMES } from '../../store/names.ts'

// Whatever a field is called, of an item or of an element of a list, its value comes out of each way to read the mirror. That tables and
// views hold it is in test/store/contract.ts.

const FIELDS = NAMES.filter((name) => name !== 'lines')
const valuesFrom = (first: number) => Object.fromEntries(FIELDS.map((name, index) => [name, first + index]))
const ITEM = { ...valuesFrom(1000), id: 1, lines: [valuesFrom(2000), { next: 1 }] }

const server = await openDatabase()

describe('fields of any name', () => {
  it('are read from the mirror, from the published file, and by query and export', async () => {
    const { url } = await serve((asked) => pageOf([ITEM], asked))
    const workspace = createWorkspace({ baseUrl: url, organizations: [ACME], publish: 'published.db' })
    expect(await workspace.run(['sync'])).toMatchObject({ code: 0 })

    for (const file of ['mirror.db', 'published.db'])
      await expectRead((args) => workspace.run([...args, '--database', file]))
  })

  it.skipIf(server.missing !== null)('are read from a mirror on PostgreSQL', async () => {
    const { url } = await serve((asked) => pageOf([ITEM], asked))
    const { run } = onPostgres(server, url)
    expect(await run(['sync'])).toMatchObject({ code: 0 })

    await expectRead(run)
  })
})

async function expectRead(run: Workspace['run']): Promise<void> {
  const columns = await rowsOf(run, ['query', `SELECT "column", path, type FROM sync_columns`])
  expect(columns.length).toBeGreaterThan(FIELDS.length)
  const [row = {}, ...others] = await rowsOf(run, ['query', 'SELECT * FROM orders'])
  expect(others).toEqual([])
  expect(columns.map(({ column }) => row[String(column)]).filter(isOfField(1000))).toHaveLength(FIELDS.length)

  const [element = {}] = await rowsOf(run, ['query', 'SELECT * FROM orders__lines ORDER BY _index'])
  expect(Object.values(element).filter(isOfField(2000))).toHaveLength(FIELDS.length)

  const exported = await run(['export', 'orders', '--format', 'ndjson'])
  expect(JSON.parse(exported.stdout)).toEqual(ITEM)
  const csv = await run(['export', 'orders', '--format', 'csv'])
  expect(csv.code).toBe(0)
  for (const value of Object.values(valuesFrom(1000))) expect(csv.stdout).toContain(`,${value}`)
  for (const format of ['table', 'parquet'])
    expect(await run(['query', 'SELECT * FROM orders', '--format', format])).toMatchObject({ code: 0 })
}

async function rowsOf(run: Workspace['run'], args: string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await run([...args, '--format', 'json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Record<string, unknown>[]
}

/** Whether it is the value of one of the fields. */
function isOfField(first: number): (value: unknown) => boolean {
  return (value) => typeof value === 'number' && value >= first && value < first + FIELDS.length
}
