import { expect, it } from 'vitest'
import { createFilePublishing } from '../../../../src/cli/file/open.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, complete, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

// What makes the published file anew, and what only its numbers.

/** A mirror of one order, read whole. */
async function createScene() {
  const mirror = openTestMirror()
  const { save: _, ...walk } = await beginTestWalk(mirror, jobOf())
  await walk.saveItems('{"id":1,"total":1}')
  await complete(mirror, jobOf(), walk.walk)
  const { state } = createFilePublishing(mirror.connection, mirror.file, { pid: 1, newToken: () => '' })
  return { mirror, walk, state }
}

const sql = (text: string) => (mirror: TestMirror) => void mirror.connection.exec(text)

it.each<[string, (mirror: TestMirror, walk: Awaited<ReturnType<typeof createScene>>['walk']) => unknown]>([
  ['a row', (_mirror, { saveItems }) => saveItems('{"id":2,"total":1}')],
  ['a value', (_mirror, { saveItems }) => saveItems('{"id":1,"total":2}')],
  ['an item without a key', (_mirror, { saveItems }) => saveItems('{"total":2}')],
  ['coverage', sql("UPDATE sync_walks SET coverage = 'repaired', expected_missed = 1")],
  ['how many rows are held back', sql('UPDATE sync_jobs SET removals_held = 1')],
  ['the name of an organization', sql("UPDATE organizations SET name = 'renamed' WHERE name = 'acme'")],
  ['that an organization is not configured', sql('UPDATE organizations SET configured = 0')],
  ['what was counted of a column', sql('UPDATE sync_column_counts SET filled = filled + 1')],
  ['rows that were forgotten', sql('UPDATE sync_jobs SET rows = 0')],
])('%s changes the contents', async (_what, change) => {
  const { mirror, walk, state } = await createScene()
  const { contents } = await state()

  await change(mirror, walk)

  expect((await state()).contents).not.toBe(contents)
})

it.each<[string, (mirror: TestMirror, walk: Awaited<ReturnType<typeof createScene>>['walk']) => unknown]>([
  ['a page without changes', (_mirror, { saveItems }) => saveItems('{"id":1,"total":1}')],
  ['a later walk', async (mirror) => complete(mirror, jobOf(), (await beginTestWalk(mirror, jobOf())).walk)],
  ['a refresh', sql("UPDATE sync_jobs SET fresh_as_of = '2099-01-01T00:00:00.000Z'")],
  ['a run that failed', sql("UPDATE sync_runs SET status = 'failed', error_code = 'NETWORK'")],
  ['a token that is held', sql("UPDATE organizations SET held_since = '2026-01-01T00:00:00.000Z'")],
])('%s leaves the contents as they were', async (_what, change) => {
  const { mirror, walk, state } = await createScene()
  const { contents } = await state()

  await change(mirror, walk)

  expect((await state()).contents).toBe(contents)
})
