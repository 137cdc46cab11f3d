import { describe, expect, it } from 'vitest'
import { createSeenItems } from '../../src/mirror/seen-items.ts'
import { runOnce, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

/** What the mirror knows of where the items of the walk stand. */
function places({ connection }: TestMirror) {
  return connection.prepare('SELECT * FROM temp._seen_items_1 ORDER BY segment, position, mark').all()
}

/** A list of ten pages from which items go, and to which they come, until its server fails before some answer. */
function movingList(failsBefore: number) {
  return scriptedList({
    ids: upTo(30),
    before: (answer, { ids }) => {
      if (answer === failsBefore) throw new Error('the server broke down')
      if (answer === 3 || answer === 9) ids.shift()
      if (answer === 5) ids.splice(2, 0, 50)
      if (answer === 7) ids.push(ids.shift() ?? 0)
      if (answer === 12) ids.unshift(60)
    },
  })
}

const ANSWERS = upTo(14)

describe('where the items of a walk stand', () => {
  it('is asked with every reason by the list of this test', async () => {
    const test = openTestMirror()

    await runOnce(test, movingList(-1))

    expect(test.rows('SELECT DISTINCT why FROM sync_pages ORDER BY why').map(({ why }) => why)).toEqual(
      expect.arrayContaining(['back', 'forward', 'front', 'look']),
    )
    expect(Number(test.value('SELECT count(*) FROM sync_pages'))).toBeGreaterThan(ANSWERS.length)
  })

  it.each(ANSWERS)('is recalled exactly by the process that goes on after answer %i', async (answer) => {
    const test = openTestMirror()
    await runOnce(test, movingList(answer + 1))
    const known = places(test)
    const next = openTestMirror({ file: test.file })

    await next.mirror.resumeWalk(1)

    expect(walks(test)).toMatchObject([{ status: 'open', pages: answer }])
    expect(places(next)).toEqual(known)
  })
})

const PLACE = { pass: 1, segment: 1, position: 0 }

describe('the table that a walk takes over from another one', () => {
  it('holds nothing of what that one saw', () => {
    const { connection } = openTestMirror()
    const seen = createSeenItems(connection)
    seen.begin(1)
    seen.addSegment(1, 1, 1, ['a', 'b'])
    seen.forget(1)

    seen.begin(2)

    expect(seen.whereAll(2, ['a', 'b'])).toEqual([undefined, undefined])
  })

  it.each([
    { when: 'the walk began', task: 'begin' as const },
    { when: 'the walk was forgotten', task: 'forget' as const },
  ])('is empty where a transaction was undone in which $when', ({ task }) => {
    const { connection } = openTestMirror()
    const seen = createSeenItems(connection)
    if (task === 'forget') {
      seen.begin(1)
      seen.add(1, 'a', PLACE)
    }
    const undone = connection.transaction(() => {
      seen[task](1)
      throw new Error('undone')
    })
    expect(undone).toThrow('undone')

    seen.begin(1)

    expect(seen.where(1, 'a')).toBeUndefined()
  })

  it('is not that of a walk which stands open', () => {
    const { connection } = openTestMirror()
    const seen = createSeenItems(connection)
    seen.begin(1)
    seen.add(1, 'a', PLACE)

    seen.begin(2)
    seen.add(2, 'b', PLACE)

    expect(seen.whereAll(1, ['b', 'a'])).toEqual([undefined, PLACE])
    expect(seen.whereAll(2, ['b', 'a'])).toEqual([PLACE, undefined])
  })
})
