import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { parseScrape } from '../../listener/exposition.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('the listener of start on a PostgreSQL mirror', () => {
  it('answers as on a file, and is not ready while the server does not answer', async () => {
    const personal = items(6).map((item) => ({ ...item, note: 'Data-of-an-item' }))
    const { url: baseUrl } = await serve((asked) => pageOf(personal, asked))
    const settings = { schedule: '0 0 29 2 *', http: { port: 0 }, publish: 'copy.db' }
    const { run, start, rows, workspace } = onPostgres(server, baseUrl, settings)
    const daemon = start(['start'])
    const url = String((await daemon.log(({ msg }) => msg === 'listening')).url)
    const get = (path: string) => fetch(`${url}${path}`)
    await daemon.log(({ event }) => event === 'published')

    const scrape = async () => parseScrape(await (await get('metrics')).text()).samples
    const gauge = async (wanted: string) => (await scrape()).find(({ name }) => name === wanted)?.value
    while ((await gauge('admin_mirror_runs_total')) !== 1) await new Promise((wake) => setTimeout(wake, 100))
    const paths = ['', 'healthz', 'readyz', 'metrics', 'status.json', 'check']
    const answers = await Promise.all(paths.map(get))
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect(texts.join()).not.toContain('Data-of-an-item')
    expect(texts[0]).toMatch(/mirror \d+ (?:kB|MB|KB|KiB)/i)
    for (const token of [workspace.secret('only for tests'), '1|Secret'])
      expect(texts.join()).not.toContain(token)
    const told = JSON.parse(texts[4] ?? '') as { jobs: object[] }
    const typed = JSON.parse((await run(['status', '--json'])).stdout) as { jobs: object[] }
    expect(Object.keys(told)).toEqual(Object.keys(typed))
    expect(told.jobs).toMatchObject([{ organization: 'acme', rows: 6, coverage: 'steady' }])
    expect(await gauge('admin_mirror_usable')).toBe(1)
    expect(await gauge('admin_mirror_database_bytes')).toBeGreaterThan(100_000)

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
