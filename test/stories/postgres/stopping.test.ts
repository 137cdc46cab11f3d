import { describe, expect, it } from 'vitest'
import { syncedOnPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'

// Statements that take long, write, or return more than memory holds.

const server = await openDatabase()

const synced = () => syncedOnPostgres(server, [{ id: 1 }])

const SLEEPERS =
  "FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep' AND application_name = 'admin-mirror'"

const WRITING = [
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

describe.skipIf(server.missing !== null)('a statement on the server', () => {
  it('ends with the command, whatever ends that; one that somebody else ends fails, and is not run again', async () => {
    const { start, read } = await synced()
    const sleepers = (count: number) =>
      expect
        .poll(() => read(`SELECT count(*)::int AS n ${SLEEPERS}`), { timeout: 30_000 })
        .toEqual([{ n: count }])
    const sleeping = async () => {
      const running = start(['query', 'SELECT pg_sleep(600)'])
      await sleepers(1)
      return running
    }
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const running = await sleeping()
      running.killAll(signal)
      expect(await running.ended).toMatchObject({ signal })
      await sleepers(0)
    }

    const running = await sleeping()
    await read(`SELECT pg_cancel_backend(pid) ${SLEEPERS}`)
    const why = /TIMEOUT: the PostgreSQL server has ended the statement \(SQLSTATE 57014\)/
    const stderr = expect.stringMatching(why) as string
    expect(await running.ended).toMatchObject({ code: 1, stdout: '', stderr })
  })

  it('writes nothing, by functions and procedures either', async () => {
    const { run, read } = await synced()
    await read(
      "CREATE FUNCTION clear() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); DELETE FROM orders; RETURN 1; END $$",
    )
    await read('CREATE PROCEDURE clear_all() LANGUAGE sql AS $$ DELETE FROM orders $$')
    for (const sql of WRITING) {
      const { code, stdout, stderr } = await run(['query', sql])
      expect({ sql, code, stdout, says: stderr !== '' }).toEqual({ sql, code: 2, stdout: '', says: true })
    }
    expect(await read('SELECT count(*)::int AS n FROM orders')).toEqual([{ n: 1 }])
  })

  it('may return more than memory holds', async () => {
    const { workspace, address } = await synced()
    const env = { DB_PASSWORD: address.password() ?? '', NODE_OPTIONS: '--max-old-space-size=128' }
    // A few batches have room, also where the collector gets no turn, and all of it has not.
    const sql = "SELECT g, repeat('x', 20000) AS text FROM generate_series(1, 12000) AS g"
    const through = ['sh', '-c', 'exec "$@" > /dev/null', 'sh']
    const ended = await workspace.run(['query', sql, '--format', 'json'], { env, through })

    expect(ended).toMatchObject({ code: 0, stderr: '' })
  })
})
