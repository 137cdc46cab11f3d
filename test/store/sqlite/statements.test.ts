import { expect, it } from 'vitest'
import { watchEdges } from '../../helpers/edges.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'
import { statementsOf } from '../statements.ts'

function watch() {
  const seen: string[] = []
  const end = watchEdges(({ what }) => void (/^[A-Z]+ /.test(what) && seen.push(what)))
  return () => {
    end()
    return seen
  }
}

it('a page asks a file for no more than this', async () => {
  expect(await statementsOf(await begin(openTestMirror()), watch)).toEqual({
    added: [
      'SELECT sync_collections',
      'SELECT orders',
      'BEGIN',
      'PRAGMA',
      'SELECT sync_jobs',
      'INSERT sync_seq',
      'INSERT orders',
      'INSERT orders_json',
      'UPDATE sync_walks',
      'INSERT sync_pages',
      'UPDATE sync_runs',
      'UPDATE sync_jobs',
    ],
    changed: [
      'SELECT sync_collections',
      'SELECT orders',
      'BEGIN',
      'PRAGMA',
      'SELECT sync_jobs',
      'INSERT sync_seq',
      'INSERT orders_history',
      'UPDATE orders_json',
      'UPDATE orders',
      'UPDATE sync_walks',
      'INSERT sync_pages',
      'UPDATE sync_runs',
    ],
    unchanged: [
      'SELECT sync_collections',
      'SELECT orders',
      'BEGIN',
      'PRAGMA',
      'SELECT sync_jobs',
      'UPDATE sync_walks',
      'INSERT sync_pages',
      'UPDATE sync_runs',
    ],
  })
})
