import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { identifyItems } from '../../src/sync/items.ts'
import type { Item, Job } from '../../src/sync/types.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { itemOf, pageOf } from '../helpers/pages.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'
import { jsonTexts } from '../json/arbitrary.ts'

/** A mirror that holds these items. */
async function holding(texts: readonly string[], job: Job = jobOf()) {
  const test = openTestMirror()
  const testWalk = await beginTestWalk(test, job)
  await testWalk.saveItems(...texts)
  return { test, job, ...testWalk }
}

/** The marks of these texts, where they are recognized. */
async function marksOf({ mirror }: TestMirror, job: Job, texts: readonly string[]) {
  return (await mirror.recognizer(job)(texts)).map((one) => one?.key.id ?? null)
}

/** The items with these texts, of which those are recognized that can be. */
async function recognizedItems({ mirror }: TestMirror, job: Job, texts: readonly string[]): Promise<Item[]> {
  const recognized = await mirror.recognizer(job)(texts)
  return texts.map((text, index) => ({ ...itemOf(text), recognized: recognized[index] ?? null }))
}

const UUID = '7f3c0f1e-52c7-4a86-9d0b-000000000001'

describe('an item is recognized', () => {
  it.each<[string, string, string[], string]>([
    ['by a whole number', '{"id":17,"a":1}', ['id'], '17'],
    ['by a negative one', '{"id":-17}', ['id'], '-17'],
    ['by a text', `{"a":1,"id":"${UUID}"}`, ['id'], UUID],
    ['by a text that is a number, among texts', '{"id":"17"}', ['id'], '17'],
    ['by a number among texts', '{"id":18.0,"n":"18"}', ['n'], '18'],
    ['with spaces about it', '{ "id" :\n 17 }', ['id'], '17'],
    ['by two fields', '{"no":7,"store":"A"}', ['store', 'no'], '["A","7"]'],
    ['by a name that a pattern would take for more', '{"a*":7}', ['a*'], '7'],
  ])('%s', async (_how, text, key, mark) => {
    const job = jobOf({ key })
    const { test } = await holding([text, '{"id":"x","n":"y","no":"z","store":"B","a*":"b"}'], job)

    expect(await marksOf(test, job, [text])).toEqual([mark])
  })

  it.each([
    ['that is new', '{"id":3}'],
    ['that has changed', '{"id":1,"a":2}'],
    ['that is written otherwise', '{"id":1, "a":1}'],
    ['whose key stands behind another one of that name', '{"of":{"id":1},"id":2}'],
    ['whose key is written with an exponent', '{"id":1e0,"a":1}'],
    ['without a key', '{"a":1}'],
    ['that is no object', '1'],
  ])('not if it is one %s', async (_what, text) => {
    const { test, job } = await holding(['{"id":1,"a":1}', '{"of":{"id":1},"id":2}'])

    expect(await marksOf(test, job, [text, '{"id":1,"a":1}'])).toEqual([null, '1'])
  })

  it('not if another organization has it', async () => {
    const { test } = await holding(['{"id":1}'])

    expect(await marksOf(test, jobOf({}, GLOBEX), ['{"id":1}'])).toEqual([null])
  })

  it('by a process that has not written anything', async () => {
    const { test, job } = await holding(['{"id":1}'])
    const other = openTestMirror({ file: test.file })

    expect(await marksOf(other, job, ['{"id":1}'])).toEqual(['1'])
  })

  it('not while there are no tables, and then as they are', async () => {
    const test = openTestMirror()
    const recognize = test.mirror.recognizer(jobOf())
    const before = await recognize(['{"id":"1"}'])
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1}')
    const asInteger = await recognize(['{"id":1}'])
    await saveItems('{"id":"x"}')

    const asText = await recognize(['{"id":1}', '{"id":"x"}'])

    expect(before).toEqual([])
    expect(asInteger).toMatchObject([{ key: { parts: [{ text: '1', integer: true }] } }])
    expect(asText).toMatchObject([{ key: { parts: [{ text: '1', integer: false }] } }, { key: { id: 'x' } }])
  })

  it('as what reading it would tell, whatever the items are like', async () => {
    const field = fc.tuple(
      fc.constantFrom('id', 'no', 'a'),
      fc.oneof(fc.constantFrom('1', '"1"', '2', '"2"'), jsonTexts),
    )
    const item = fc
      .array(field, { maxLength: 3 })
      .map((fields) => `{${fields.map(([name, value]) => `"${name}":${value}`).join(',')}}`)

    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(item, { minLength: 1, maxLength: 6 }), async (texts) => {
        const job = jobOf()
        const { test, save } = await holding([])
        for (const text of texts) await save(pageOf([text], { number: 1, next: 2 }))
        const read = texts.map((text) => identifyItems(job, pageOf([text]))[0])

        const recognized = await test.mirror.recognizer(job)(texts)

        for (const [index, one] of recognized.entries()) if (one) expect(one.key.id).toBe(read[index]?.id)
        test.close()
      }),
      { numRuns: 60 },
    )
  })
})

describe('a page of recognized items', () => {
  const TEXTS = ['{"id":1,"a":1}', '{"id":2,"a":1}', '{"id":3,"a":1}']

  it('is saved as one that was read', async () => {
    const { test, job, save } = await holding(TEXTS)
    const items = await recognizedItems(test, job, [...TEXTS.slice(0, 2), '{"id":3,"a":2}', '{"id":4}'])

    const saved = await save(pageOf([], { items, next: 3 }))

    expect(saved).toMatchObject({ added: 1, changed: 1, rejected: 0 })
    expect(test.rows('SELECT id, a FROM orders ORDER BY id').map(Object.values)).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
      [4, null],
    ])
  })

  it('brings back what was changed meanwhile, here or by another process', async () => {
    const { test, job, save } = await holding(TEXTS)
    const items = await recognizedItems(test, job, TEXTS)
    const other = openTestMirror({ file: test.file, clock: test.clock })
    const elsewhere = await beginTestWalk(other, job)
    await save(pageOf(['{"id":1,"a":7}'], { next: 3 }))
    const afterOwn = await save(pageOf([], { items: items.slice(0, 1), next: 3 }))
    const again = await recognizedItems(test, job, TEXTS)
    await elsewhere.saveItems('{"id":2,"a":8}')

    const afterOther = await save(pageOf([], { items: again, next: 3 }))

    expect(items.every(({ recognized }) => recognized)).toBe(true)
    expect(again.every(({ recognized }) => recognized)).toBe(true)
    expect(afterOwn).toMatchObject({ changed: 1 })
    expect(afterOther).toMatchObject({ changed: 1 })
    expect(test.rows('SELECT a FROM orders').map(({ a }) => a)).toEqual([1, 1, 1])
  })
})
