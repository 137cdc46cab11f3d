import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { begin } from '../stage.ts'
import { statementsOf } from '../statements.ts'

const server = await openDatabase()

type Query = (this: Client, asked: string | { text: string }, ...more: unknown[]) => unknown

function watch() {
  const seen: string[] = []
  const client = Client.prototype as unknown as { query: Query }
  const { query } = client
  client.query = function (asked, ...more) {
    seen.push(typeof asked === 'string' ? asked : asked.text)
    return query.call(this, asked, ...more)
  }
  return () => {
    client.query = query
    return seen
  }
}

describe.skipIf(server.missing !== null)('on a server', () => {
  it('a page asks for no more than this, one way there and back each', async () => {
    const mirror = await openPostgresMirror(newSchema(server))

    expect(await statementsOf(await begin(mirror), watch)).toEqual({
      added: [
        'SELECT orders',
        'BEGIN;',
        'SELECT sync_jobs',
        'INSERT sync_seq',
        'INSERT orders',
        'INSERT orders_json',
        'UPDATE sync_walks',
        'INSERT sync_pages',
        'UPDATE sync_runs',
        'UPDATE sync_jobs',
        'COMMIT',
      ],
      changed: [
        'SELECT orders',
        'BEGIN;',
        'SELECT sync_jobs',
        'INSERT sync_seq',
        'INSERT orders_history',
        'UPDATE orders_json',
        'UPDATE orders',
        'UPDATE sync_walks',
        'INSERT sync_pages',
        'UPDATE sync_runs',
        'COMMIT',
      ],
      unchanged: [
        'SELECT orders',
        'BEGIN;',
        'SELECT sync_jobs',
        'UPDATE sync_walks',
        'INSERT sync_pages',
        'UPDATE sync_runs',
        'COMMIT',
      ],
    })
  })
})
