import { expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'

const server = await openDatabase()

const MINUTE = 60_000
const FIRST = Date.UTC(2026, 10, 20)
const timeAt = (minute: number) => new Date(FIRST + minute * MINUTE).toISOString()

it.skipIf(server.missing !== null)(
  'a refresh asks for what changed, and status says why no longer, on PostgreSQL too',
  async () => {
    const items = Array.from({ length: 200 }, (_, index) => ({
      id: index + 1,
      state: 'open',
      updated_at: timeAt(index),
    }))
    let isHeeded = true
    const { url } = await serve((asked) => {
      const since = asked.query.get('updated_after')
      return pageOf(since && isHeeded ? items.filter((one) => one.updated_at > since) : items, asked, {
        perPage: 25,
      })
    })
    const { run, rows } = onPostgres(server, url, {
      collections: {
        establishments: false,
        orders: { changedSince: { parameter: 'updated_after', field: 'updated_at' } },
      },
    })
    const read = await rows()
    expect(await run(['sync'])).toMatchObject({ code: 0 })

    items[99] = { id: 100, state: 'paid', updated_at: timeAt(201) }
    expect(await run(['sync', '--refresh'])).toMatchObject({ code: 0 })
    expect(await read('SELECT id FROM orders WHERE state = $1', 'paid')).toHaveLength(1)
    expect((await run(['status'])).stdout).not.toContain('changedSince')

    isHeeded = false
    expect(await run(['sync', '--refresh'])).toMatchObject({ code: 0 })
    expect((await run(['status'])).stdout).toMatch(/^advice: changedSince of acme orders is off: .*ignores/m)
  },
)
