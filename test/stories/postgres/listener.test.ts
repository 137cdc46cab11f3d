import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'

// What its pages hold: test/stories/listener.test.ts.

const server = await openDatabase()

describe.skipIf(server.missing !== null)('the listener of start on a PostgreSQL mirror', () => {
  it('answers as on a file, and is not ready while the server does not answer', async () => {
    const { url: baseUrl } = await serve((asked) => pageOf(items(6), asked))
    const { run, start, rows } = onPostgres(server, baseUrl, { schedule: '0 0 29 2 *', http: { port: 0 } })
    const daemon = start(['start'])
    const url = String((await daemon.log(({ msg }) => msg === 'listening')).url)
    const get = (path: string) => fetch(`${url}${path}`)
    await daemon.log(({ event }) => event === 'run_finished')

    const shown = JSON.parse(await (await get('status.json')).text()) as object
    const typed = JSON.parse((await run(['status', '--json'])).stdout) as object
    expect(Object.keys(shown)).toEqual(Object.keys(typed))
    const scraped = await (await get('metrics')).text()
    expect(scraped).toMatch(/^admin_mirror_usable 1$/m)
    expect(scraped).toMatch(/^admin_mirror_database_bytes [1-9]\d{5,}$/m)

    await expect
      .poll(async () => (await run(['status'])).stdout)
      .toContain('\nqueue: no list waits; 0 taken by workers\n')

    const read = await rows()
    await read('BEGIN')
    await read('LOCK TABLE sync_settings IN ACCESS EXCLUSIVE MODE')
    const until = async (status: number) => {
      for (;;) {
        const answer = await get('readyz')
        const text = await answer.text()
        if (answer.status === status) return text
      }
    }
    expect(await until(503)).toMatch(/the PostgreSQL server at .* does not answer/)
    expect((await get('healthz')).status).toBe(200)
    await read('ROLLBACK')
    expect(await until(200)).toBe('ok\n')
    daemon.killAll('SIGTERM')
    expect(await daemon.ended).toMatchObject({ code: 0 })
  })
})
