import { describe, expect, it } from 'vitest'
import type { Status } from '../../../src/report/status.ts'
import { holderText } from '../../../src/store/postgres/server/answers.ts'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase, openReader } from '../../helpers/postgres.ts'

const server = await openDatabase()

/** Asks again until the answer is as it should be. */
async function until<T>(ask: () => Promise<T>, isMeant: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (isMeant(answer)) return answer
  }
}

const HOLDER = {
  pid: 4711,
  waits_for: 'relation',
  role: 'lea',
  program: 'psql',
  address: '10.0.0.7',
  since: new Date(0),
  word: 'alter',
  is_idle: false,
}

describe('the holder of a lock', () => {
  it.each([
    [
      {},
      'a lock on the PostgreSQL server that the role lea holds since 1970-01-01T00:00:00.000Z, by ALTER (psql, 10.0.0.7, process 4711)',
    ],
    [
      { is_idle: true, address: null },
      'a lock on the PostgreSQL server that the role lea holds since 1970-01-01T00:00:00.000Z, idle after ALTER (psql, process 4711)',
    ],
    // What another role does is shown to few.
    [
      { program: null, address: null, since: null, word: null, is_idle: null },
      'a lock on the PostgreSQL server that the role lea holds (process 4711)',
    ],
    [
      { waits_for: 'advisory', role: null, word: 'secret' },
      'an advisory lock on the PostgreSQL server that somebody holds since 1970-01-01T00:00:00.000Z (psql, 10.0.0.7, process 4711)',
    ],
  ])('of %j is named', (changed, text) => {
    expect(holderText({ ...HOLDER, ...changed })).toBe(`waiting for ${text}`)
  })
})

describe.skipIf(server.missing !== null)('a lock that somebody else holds', () => {
  it('on a table is named in the log while a sync waits, without the text of a statement', {
    timeout: 120_000,
  }, async () => {
    const { url } = await serve((asked) => pageOf([{ id: 1 }], asked))
    const postgres = onPostgres(server, url)
    expect(await postgres.run(['sync'])).toMatchObject({ code: 0 })
    const analyst = await openReader(postgres.address)
    await analyst("SET application_name = 'report'")
    await analyst('BEGIN')
    await analyst("LOCK TABLE orders IN EXCLUSIVE MODE /* 'secret' */")
    await analyst('LOCK TABLE sync_jobs IN ACCESS EXCLUSIVE MODE')
    const sync = postgres.start(['sync'])

    const told = await sync.log(({ event, msg }) => event === 'mirror_busy' && /a lock on/.test(msg))
    await analyst('COMMIT')

    expect(told.msg).toMatch(
      /that the role \w+ holds since \d{4}-.*Z, idle after LOCK \(report, .*process \d+\)/,
    )
    expect(await sync.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('secret') })
  })

  it('on a table is named by status while a sync waits', {
    timeout: 120_000,
  }, async () => {
    const { url } = await serve((asked) => pageOf([{ id: 1 }], asked))
    const postgres = onPostgres(server, url)
    expect(await postgres.run(['sync'])).toMatchObject({ code: 0, stdout: '' })
    expect((await postgres.run(['status'])).stdout).not.toContain('waiting for a lock')
    const analyst = await openReader(postgres.address)
    await analyst("SET application_name = 'report'")
    await analyst('BEGIN')
    await analyst('LOCK TABLE orders_raw, orders IN ACCESS EXCLUSIVE MODE')
    const sync = postgres.start(['sync'])

    const status = await until(
      () => postgres.run(['status', '--json']),
      ({ stdout }) => stdout.includes('waiting for a lock'),
    )
    const told = (await postgres.run(['status'])).stdout
    await analyst('COMMIT')

    const holder =
      /^waiting for a lock on the PostgreSQL server that the role \w+ holds since \d{4}-.*Z, idle after LOCK \(report, .*process \d+\)$/m
    expect((JSON.parse(status.stdout) as Status).locks).toEqual([expect.stringMatching(holder)])
    expect(told).toMatch(holder)
    expect(await sync.ended).toMatchObject({ code: 0 })
  })

  it('and that anybody can take keeps start waiting with a word, and SIGTERM ends it with 0', {
    timeout: 120_000,
  }, async () => {
    const { url } = await serve((asked) => pageOf([{ id: 1 }], asked))
    const postgres = onPostgres(server, url)
    const anybody = await openReader(postgres.address)
    await anybody(
      `
      SELECT pg_advisory_lock(${7_362_004_117 % 2 ** 31}, hashtext($1)), pg_advisory_lock(918273645, hashtext($1))
    `,
      postgres.address.schema,
    )
    for (const lock of [`${7_362_004_117 % 2 ** 31}`, '918273645']) {
      const start = postgres.start(['start'])
      await start.log(({ event, msg }) => event === 'mirror_busy' && /an advisory lock on .* holds/.test(msg))
      start.kill('SIGTERM')
      expect(await start.ended).toMatchObject({ code: 0 })
      await anybody(`SELECT pg_advisory_unlock(${lock}, hashtext($1))`, postgres.address.schema)
      expect((await postgres.run(['status'])).stdout).not.toContain('died')
    }
  })
})
