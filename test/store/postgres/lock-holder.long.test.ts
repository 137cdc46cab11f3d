import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase, openReader } from '../../helpers/postgres.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a lock that somebody else holds', () => {
  it('on a table is named in the log while a sync waits, without the text of a statement', {
    timeout: 120_000,
  }, async () => {
    const { url } = await serve((asked) => pageOf([{ id: 1 }], asked))
    const postgres = onPostgres(server, url)
    expect(await postgres.run(['sync'])).toMatchObject({ code: 0, stdout: '' })
    const analyst = await openReader(postgres.address)
    await analyst("SET application_name = 'report'")
    await analyst('BEGIN')
    await analyst("LOCK TABLE orders_raw, orders IN ACCESS EXCLUSIVE MODE /* 'secret' */")
    const sync = postgres.start(['sync'])

    const logged = await sync.log(({ event, msg }) => event === 'mirror_busy' && /a lock on/.test(msg))
    await analyst('COMMIT')

    const holder =
      /a lock on the PostgreSQL server that the role \w+ holds since \d{4}-.*Z, idle after LOCK \(report, .*process \d+\)/
    expect(logged.msg).toMatch(holder)
    expect(await sync.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('secret') })
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
