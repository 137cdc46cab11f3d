import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { openDatabase, openReader } from '../../helpers/postgres.ts'

// Statements that take long, write, or return more than memory holds.

const server = await openDatabase()

const SLEEP = 'SELECT pg_sleep(600)'

async function synced(): Promise<PostgresWorkspace> {
  const { url } = await serve((asked) => pageOf([{ id: 1 }], asked))
  const postgres = onPostgres(server, url)
  expect(await postgres.run(['sync'])).toMatchObject({ code: 0 })
  return postgres
}

type Read = Awaited<ReturnType<typeof openReader>>

/** Waits until as many statements of these tests sleep on the server. */
async function sleepers(read: Read, count: number): Promise<void> {
  await expect
    .poll(
      () =>
        read(
          "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
        ),
      {
        timeout: 30_000,
      },
    )
    .toEqual([{ n: count }])
}

describe.skipIf(server.missing !== null)('a statement on the server', () => {
  it('ends with the command, whatever ends that', async () => {
    const { start, address } = await synced()
    const read = await openReader(address)
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const running = start(['query', SLEEP])
      await sleepers(read, 1)
      running.killAll(signal)

      expect(await running.ended).toMatchObject({ signal })
      await sleepers(read, 0)
    }
  })

  it('that somebody else ends fails, and is not run again', async () => {
    const { start, address } = await synced()
    const read = await openReader(address)
    const running = start(['query', SLEEP])
    await sleepers(read, 1)
    await read(
      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
    )
    const ended = await running.ended
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(/TIMEOUT: the PostgreSQL server has ended the statement \(SQLSTATE 57014\)/)
  })

  it('writes nothing, by functions and procedures either', async () => {
    const { run, address } = await synced()
    const read = await openReader(address)
    await read(
      "CREATE FUNCTION clear() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); DELETE FROM orders; RETURN 1; END $$",
    )
    await read('CREATE PROCEDURE clear_all() LANGUAGE sql AS $$ DELETE FROM orders $$')
    const writes = [
      'SELECT clear()',
      'CALL clear_all()',
      'DO $$ BEGIN PERFORM clear(); END $$',
      "SELECT set_config('transaction_read_only', 'off', false)",
      'EXPLAIN ANALYZE SELECT clear()',
      'EXPLAIN ANALYZE DELETE FROM orders',
      'SELECT * INTO mine FROM orders',
      'SELECT * FROM orders FOR UPDATE',
      "COPY orders TO '/tmp/of-nobody'",
      "COPY orders TO PROGRAM 'cat'",
      "SELECT nextval('sync_epochs')",
      'SELECT 1; DELETE FROM orders',
      'SET default_transaction_read_only = off',
    ]
    for (const sql of writes) {
      const { code, stdout, stderr } = await run(['query', sql])
      expect({ sql, code, stdout }).toEqual({ sql, code: 2, stdout: '' })
      expect(stderr).not.toBe('')
    }
    expect(await read('SELECT count(*)::int AS n FROM orders')).toEqual([{ n: 1 }])
  })

  it('may return more than memory holds', async () => {
    const { workspace, address } = await synced()
    const env = { DB_PASSWORD: address.password() ?? '', NODE_OPTIONS: '--max-old-space-size=64' }
    const sql = "SELECT g, repeat('x', 1000) AS text FROM generate_series(1, 100000) AS g"
    const through = ['sh', '-c', 'exec "$@" > /dev/null', 'sh']
    expect(await workspace.run(['query', sql, '--format', 'json'], { env, through })).toMatchObject({
      code: 0,
      stderr: '',
    })
  })
})
