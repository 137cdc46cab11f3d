import { getEventListeners } from 'node:events'
import path from 'node:path'
import { expect, it } from 'vitest'
import { copyMirror } from '../../../src/store/sqlite/copy.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

// What a copy holds: test/stories/published.test.ts.

it('a copy that is made leaves nothing behind in its process', async () => {
  const { signal } = new AbortController()
  const target = path.join(tempFolder(), 'copy.db')
  const task = { mirror: openTestMirror().file, target, mode: null, at: 0, isPublished: false }

  expect(await copyMirror(task, 'a process', signal)).toBeGreaterThan(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
