import { getEventListeners } from 'node:events'
import path from 'node:path'
import { expect, it } from 'vitest'
import { copyMirror } from '../../../src/store/sqlite/copy.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

// What a copy holds: test/stories/published.test.ts.

it('a copy that is made leaves nothing behind in its process', async () => {
  const { signal } = new AbortController()
  const target = path.join(tempFolder(), 'copy.db')
  const task = { mirror: openTestMirror().file, target, publishMode: null, at: 0 }

  expect(await copyMirror(task, 'a process', signal)).toBeGreaterThan(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

it('nothing is published where the view of a list cannot be read; a view of a user may be of any kind', async () => {
  const { store, clock, connection, file } = openTestMirror()
  await (await begin({ store, clock })).page('{"id":1,"l":[{"a":1}]}')
  const target = path.join(tempFolder(), 'copy.db')
  const task = { mirror: file, target, publishMode: 0o644, at: 0 }
  const publish = () => copyMirror(task, 'a process', new AbortController().signal)

  connection.exec("CREATE VIEW orders__mine AS SELECT json('{') FROM orders JOIN sync_jobs")
  expect(await publish()).toBeGreaterThan(0)
  connection.exec("DROP VIEW orders__l; CREATE VIEW orders__l AS SELECT json('{') AS a FROM orders")
  await expect(publish()).rejects.toThrow('malformed JSON')
})
