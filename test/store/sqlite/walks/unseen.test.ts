import { describe, expect, it } from 'vitest'
import { type KeyValues, openRawRows, type RawRows } from '../../../../src/store/sqlite/tables/raw-rows.ts'
import { createUnseen } from '../../../../src/store/sqlite/walks/unseen.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'

/** All that is told, by steps of so many rows. */
function allOf(rows: () => RawRows | null, isSeen: (mark: string) => boolean, count: number): string[] {
  const unseen = createUnseen(rows, jobOf(), isSeen)
  const marks: string[] = []
  while (!unseen.step(count, (mark) => marks.push(mark)));
  return marks
}

describe('the rows that a reading has not seen', () => {
  it.each([1, 2, 3, 100])('are told of one organization alone, in steps of %i', async (count) => {
    const test = openTestMirror()
    await runOnce(test, scriptedList({ ids: upTo(6) }))
    await runOnce(test, scriptedList({ ids: [7, 8] }), { job: jobOf({}, GLOBEX) })
    const rows = () => openRawRows(test.connection, 'orders', [['id']])

    expect(allOf(rows, (mark) => mark === '2' || mark === '5', count)).toEqual(['1', '3', '4', '6'])
  })

  it('are looked for from the first again when a key column became TEXT, which has another order', () => {
    const numbers = [2n, 9n, 10n].map((id): KeyValues => [id])
    const texts: KeyValues[] = [['10'], ['2'], ['9']]
    let steps = 0
    const rows = (): RawRows => {
      const [keys, type] = steps++ === 0 ? [numbers, 'INTEGER' as const] : [texts, 'TEXT' as const]
      const after = (last: KeyValues | null) =>
        keys.filter(([id]) => last === null || String(id) > String(last[0]))
      return {
        keyTypes: [type],
        find: () => undefined,
        keysAfter: (_, last, most) => after(last).slice(0, most),
      }
    }

    expect(new Set(allOf(rows, () => false, 2))).toEqual(new Set(['2', '9', '10']))
  })

  it('are none where the collection has no tables', () => {
    expect(
      allOf(
        () => null,
        () => false,
        5,
      ),
    ).toEqual([])
  })
})
