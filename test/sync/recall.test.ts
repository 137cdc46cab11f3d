import { describe, expect, it } from 'vitest'
import { type RecallOptions, recallSeenItems } from '../../src/sync/resume.ts'
import { createSeenItems, type SeenItems } from '../../src/sync/seen.ts'
import type { LedgerEntry } from '../../src/sync/store.ts'
import { runOnce, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

const IDS = [...upTo(30), 50, 60].map(String)

/** The positions of the items that the walk has seen. */
function places(seen: SeenItems) {
  return IDS.map((id) => seen.find(id))
}

/** What a process knows that resumes the mirror's first walk. */
async function recall({ store }: TestMirror, changed: Partial<RecallOptions> = {}): Promise<SeenItems> {
  const { signal } = new AbortController()
  return recallSeenItems(
    { id: 1, resumed: true },
    { store, yieldToEventLoop: async () => {}, signal, ...changed },
  )
}

/** A list of ten pages that items leave and join, until its server fails before an answer. */
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

describe('the positions of a walk', () => {
  it('come from answers to every reason, in this test', async () => {
    const test = openTestMirror()

    await runOnce(test, movingList(-1))

    expect(test.rows('SELECT DISTINCT why FROM sync_pages ORDER BY why').map(({ why }) => why)).toEqual(
      expect.arrayContaining(['back', 'forward', 'front', 'look']),
    )
    expect(Number(test.value('SELECT count(*) FROM sync_pages'))).toBeGreaterThan(ANSWERS.length)
  })

  it.each(ANSWERS)('are recalled exactly by the process that resumes after answer %i', async (answer) => {
    const test = openTestMirror()
    const committed: LedgerEntry[] = []
    const { commit } = test.store
    test.store.commit = (lease, page) => {
      if (page.answer) committed.push(page.answer.entry)
      return commit(lease, page)
    }
    await runOnce(test, movingList(answer + 1))
    const seen = createSeenItems(1)
    for (const entry of committed) seen.add(entry)

    const recalled = await recall(openTestMirror({ file: test.file }))

    expect(walks(test)).toMatchObject([{ status: 'open', pages: answer, rows_seen: recalled.items }])
    expect(recalled.answers).toBe(answer)
    expect(places(recalled)).toEqual(places(seen))
  })
})

/** A walk of this many pages with one item each, for another process to resume. */
async function openWalkOf(pages: number): Promise<TestMirror> {
  const test = openTestMirror()
  await runOnce(
    test,
    scriptedList({
      ids: upTo(pages + 1),
      perPage: 1,
      before: (answer) => {
        if (answer > pages) throw new Error('the server broke down')
      },
    }),
  )
  return test
}

describe('a long page ledger', () => {
  it('is read in batches, and the process can work between them', async () => {
    const test = await openWalkOf(1001)
    let turns = 0

    const seen = await recall(test, {
      yieldToEventLoop: async () => {
        turns++
      },
    })

    expect(seen).toMatchObject({ answers: 1001, items: 1001, keyed: 1001 })
    expect(turns).toBe(3)
  })

  it('is not read to its end once the process stops', async () => {
    const test = await openWalkOf(1001)
    const stop = new AbortController()

    const recalling = recall(test, { signal: stop.signal, yieldToEventLoop: async () => stop.abort() })

    await expect(recalling).rejects.toThrow(/abort/)
  })
})
