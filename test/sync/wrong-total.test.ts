import { describe, expect, it } from 'vitest'
import { readJobs } from '../../src/store/sqlite/read/status.ts'
import type { Page } from '../../src/sync/types.ts'
import { ACME, jobOf } from '../helpers/jobs.ts'
import { createScene, history, type Scene, without } from '../helpers/removal-scene.ts'
import { walks } from '../helpers/run-once.ts'
import { type ScriptedList, upTo } from '../helpers/scripted-list.ts'

/** The pages of a list of ninety items, three on each. */
const PAGES = 30

/** A page of a list with this total, and with as many pages as that makes. */
function countMovement(page: Page, total: number): Page {
  const lastPage = Math.ceil(total / 3)
  return { ...page, total, lastPage, next: page.number < lastPage ? page.number + 1 : null }
}

/** Adds an item at the end with every tenth answer. */
function growing(answer: number, list: ScriptedList): void {
  if (answer % 10 === 0) list.ids.push(1000 + answer)
}

const TOTALS: [string, (page: Page, answer: number) => Page][] = [
  ['goes up and down', (page, answer) => ({ ...page, total: (page.total ?? 0) + (answer % 2) * 5 })],
  ['is too high by some pages', (page) => countMovement(page, (page.total ?? 0) + 20)],
]

/** The number of requests of each of three walks. */
async function threeWalks({ list, walk }: Scene) {
  const asked: number[] = []
  const results = []
  for (let count = 0; count < 3; count++) {
    const before = list.asked.length
    results.push(await walk())
    asked.push(list.asked.length - before)
  }
  return { asked, results }
}

function statusOf({ test }: Scene) {
  return readJobs(test.connection, test.file).find((row) => row.organization_id === ACME.id)
}

describe.each(TOTALS)('a total that %s, of a list that moves', (_what, instead) => {
  const create = () => createScene({ ids: upTo(90), before: growing, instead })

  it('costs two readings once and one each time from then on, leaves no walk trusted, and is reported with its key', async () => {
    const scene = create()
    const { asked, results } = await threeWalks(scene)

    expect(asked[0]).toBeLessThan(PAGES * 3)
    for (const requests of asked.slice(1)) expect(requests).toBeLessThan(PAGES * 2)
    for (const { error, coverage, untrusted } of results) {
      expect([error, coverage]).toEqual([null, 'drifted'])
      expect(untrusted).toMatch(/the total .*: set collections\.orders\.total: ignore$/)
    }
    expect(walks(scene.test)).toMatchObject(
      results.map(() => ({ coverage: 'drifted', total_off: 'again', expected_missed: null })),
    )
    expect(statusOf(scene)?.total_is_wrong).toBe(true)
  })

  it('removes nothing until it is ignored', async () => {
    const scene = createScene({
      ids: upTo(90),
      instead,
      before: (_answer, list) => list.ids.push(list.asked.length + 1000),
    })
    await scene.walk()
    scene.list.ids = without(scene.list.ids, 7)
    await threeWalks(scene)
    const before = history(scene.test)

    for (let count = 0; count < 3; count++) await scene.walk(null, { job: jobOf({ total: 'ignore' }) })

    expect(before).toEqual([])
    expect(history(scene.test)).toEqual([[7, 'removed']])
    expect(statusOf(scene)).toMatchObject({ total_is_wrong: false, untrusted: null })
  })
})

describe('a total that is off by a constant, of a list that moves', () => {
  it('does not matter if the movements are explained without it', async () => {
    const scene = createScene({
      ids: upTo(90),
      before: growing,
      instead: (page) => ({ ...page, total: (page.total ?? 0) + 5 }),
    })

    const { results } = await threeWalks(scene)

    for (const result of results) expect(result).toMatchObject({ coverage: 'repaired', untrusted: null })
    expect(statusOf(scene)?.total_is_wrong).toBe(false)
  })
})
