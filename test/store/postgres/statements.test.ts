import { Client } from 'pg'
import { expect, it } from 'vitest'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { begin } from '../stage.ts'

const server = await openDatabase()

type Query = (this: Client, asked: string | { text: string }, ...more: unknown[]) => unknown

/** What a server is asked for meanwhile, as in `INSERT orders`. */
async function askedBy(task: () => Promise<unknown>): Promise<string> {
  const seen: string[] = []
  const client = Client.prototype as unknown as { query: Query }
  const { query } = client
  client.query = function (asked, ...more) {
    seen.push(typeof asked === 'string' ? asked : asked.text)
    return query.call(this, asked, ...more)
  }
  await task()
  client.query = query
  const shapes = seen.map((sql) => {
    const [verb = ''] = sql.trim().split(/\s/)
    // What is asked for within brackets stands behind the table that is meant.
    const plain = sql.replaceAll(/\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g, '()').replaceAll(/\s+/g, ' ')
    const [, table] = /(?:UPDATE|INTO|JOIN|FROM) "?(orders\w*|sync_\w+)/.exec(plain) ?? []
    return table === undefined ? verb : `${verb} ${table}`
  })
  return shapes.join(', ')
}

it.skipIf(server.missing !== null)(
  'a page asks a server for no more than this, one way there and back each',
  async () => {
    const { page } = await begin(await openPostgresMirror(newSchema(server)))
    const pageWith = (a: number) => askedBy(() => page(`{"id":2,"a":${a}}`, `{"id":3,"a":${a}}`))
    await page('{"id":1,"a":1}')

    const [before, after] = [
      'SELECT orders, BEGIN;, SELECT sync_jobs',
      'UPDATE sync_walks, INSERT sync_pages, UPDATE sync_runs',
    ]
    expect(await pageWith(1)).toBe(
      `${before}, INSERT sync_seq, INSERT orders, INSERT orders_json, ${after}, UPDATE sync_jobs, COMMIT`,
    )
    expect(await pageWith(2)).toBe(
      `${before}, INSERT sync_seq, INSERT orders_history, UPDATE orders_json, UPDATE orders, ${after}, COMMIT`,
    )
    expect(await pageWith(2)).toBe(`${before}, ${after}, COMMIT`)
  },
)
