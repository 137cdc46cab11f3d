import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'

const server = await openDatabase()

const ITEMS = items(9)

describe.skipIf(server.missing !== null)('commands on a PostgreSQL mirror', () => {
  it('sync, tell, read, compare, forget', async () => {
    const { url } = await serve((asked) => pageOf(ITEMS, asked))
    const { run, rows } = onPostgres(server, url)

    expect((await run(['status'])).stdout).toMatch(/never/)
    expect(await run(['sync'])).toMatchObject({ code: 0 })
    const status = await run(['status', '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({
      jobs: [{ rows: 9, coverage: 'steady', running: false }],
    })
    expect(
      (await run(['query', 'SELECT id, state FROM orders ORDER BY id LIMIT 1', '--format', 'csv'])).stdout,
    ).toBe('id,state\n1,open\n')
    expect((await run(['export', 'orders', '--format', 'ndjson'])).stdout.split('\n')[0]).toBe(
      '{"id":1,"state":"open"}',
    )
    expect(await run(['query', 'DELETE FROM orders'])).toMatchObject({ code: 2 })
    expect(await run(['query', 'SELECT 1; DROP TABLE orders'])).toMatchObject({ code: 2 })
    expect(await run(['verify'])).toMatchObject({ code: 0 })
    expect(await run(['resume'])).toMatchObject({ code: 0 })
    await (await rows())('UPDATE sync_jobs SET fresh_as_of = now()')
    expect(await run(['forget', '--org', 'acme', '--yes'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/forgot acme orders: 9 rows/) as string,
    })
    expect(await (await rows())('SELECT fresh_as_of, newest, refresh, failing_since FROM sync_jobs')).toEqual(
      [{ fresh_as_of: null, newest: null, refresh: null, failing_since: null }],
    )
  })

  it('make no mirror where they need one, and check names first', async () => {
    const { run, rows, address } = onPostgres(server, 'http://127.0.0.1:1')
    const ends: [args: string[], code: number, message: RegExp][] = [
      [['export', 'nope', '--format', 'csv'], 2, /no table or view nope/],
      [['export', 'orders', '--format', 'csv', '--org', 'nobody'], 2, /--org nobody/],
      [['query', 'SELECT 1'], 4, /no mirror at/],
      [['verify'], 4, /no mirror at/],
      [['resume'], 0, /nothing to resume/],
      [['forget', '--org', 'acme', '--yes'], 0, /nothing to forget/],
    ]
    for (const [args, code, message] of ends) {
      const ended = await run(args)
      expect(ended).toMatchObject({ code, stdout: '' })
      expect(ended.stderr).toMatch(message)
    }
    const read = await rows()
    expect(await read('SELECT 1 FROM pg_namespace WHERE nspname = $1', address.schema)).toEqual([])
  })
})
