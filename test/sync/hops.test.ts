import { expect, it } from 'vitest'
import { runOnce } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

/** The functions of this room that are waiting now, the outermost first. */
function hopsHere(): string[] {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = before
  const hops = stack.matchAll(/at (?:async )?(\S+) \(\S*\/src\/(sync\/\S+?):/g)
  return Array.from(hops, ([, name, file]) => `${file} ${name?.split('.').at(-1)}`).toReversed()
}

it('a page goes from its job to the store, and from the source to its walk, through these functions alone', async () => {
  const test = openTestMirror()
  const hops: Record<string, string[]> = {}
  const list = scriptedList({
    ids: upTo(9),
    before() {
      hops.asked ??= hopsHere()
    },
  })
  const store: typeof test.store = {
    ...test.store,
    commit(...page) {
      hops.written = hopsHere()
      return test.store.commit(...page)
    },
  }

  const { error } = await runOnce(test, list, { store })

  expect(error).toBeNull()
  const toWalk = [
    'sync/job.ts runJob',
    'sync/run.ts withLease',
    'sync/job.ts walkList',
    'sync/walk.ts readWalk',
  ]
  expect(hops).toEqual({
    asked: [...toWalk, 'sync/walk.ts fetch'],
    written: [...toWalk, 'sync/page-writer.ts write'],
  })
})
