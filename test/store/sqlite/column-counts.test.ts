import { expect, it } from 'vitest'
import { watchEdges } from '../../helpers/edges.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

// Each statement on a view of an array has SQLite compile all its fields: one a field would keep the process for a minute.

const FIELDS = Array.from({ length: 480 }, (_, number) => `f${number}`)
const wide = (value: (number: number) => unknown) =>
  JSON.stringify({ id: 1, lines: [Object.fromEntries(FIELDS.map((name, number) => [name, value(number)]))] })

it.each<[string, (number: number) => unknown]>([
  ['values', (number) => number + 1],
  ['no value any more', () => null],
  ['values that do not fit', () => 'x'],
])('the values in an array of hundreds of fields are counted in few statements: %s', async (_what, value) => {
  const test = openTestMirror()
  const once = (item: string) => runOnce(test, scriptedList({ ids: [1], item: () => item }))
  await once(wide((number) => number))
  const asked: string[] = []
  const end = watchEdges({
    before({ what }) {
      if (/^SELECT .* FROM .*"orders__lines"/.test(what)) asked.push(what)
    },
  })

  expect((await once(wide(value))).error).toBeNull()

  end()
  expect(asked.length).toBeGreaterThan(0)
  expect(asked.length).toBeLessThan(30)
})
