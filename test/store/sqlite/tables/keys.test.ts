import { describe, expect, it } from 'vitest'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

const TABLES = ['orders', 'orders_raw', 'orders_history']

describe('the key of an item', () => {
  it.each<[string, string[], string, Record<string, unknown>]>([
    ['a number', ['id'], '{"id":7}', { id: 7 }],
    ['a whole number, however it is written', ['id'], '{"id":7e0}', { id: 7 }],
    ['a text', ['id'], '{"id":"o-7"}', { id: 'o-7' }],
    ['a text that looks like a number', ['id'], '{"id":"007"}', { id: '007' }],
    ['a fraction', ['id'], '{"id":7.50}', { id: '7.5' }],
    ['20 digits', ['id'], '{"id":12345678901234567890}', { id: '12345678901234567890' }],
    ['a path', ['customer.id'], '{"customer":{"id":7}}', { customer__id: 7 }],
    ['two fields', ['order', 'line'], '{"order":7,"line":"a"}', { order: 7, line: 'a' }],
    ['a name that is ours', ['_id'], '{"_id":7}', { field_id: 7 }],
  ])('is in all three tables: %s', async (_what, key, text, columns) => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf({ key }))
    await saveItems(text)

    await saveItems(text.replace('}', ',"changed":true}').replace('},"changed":true}', '}}'))
    await saveItems(`${text.slice(0, -1)},"changed":1}`)

    for (const table of TABLES) {
      expect(test.rows(`SELECT * FROM ${table}`).at(-1)).toMatchObject({
        _organization_id: ACME.id,
        ...columns,
      })
    }
    expect(test.value('SELECT count(*) FROM orders')).toBe(1)
  })

  it('is the same as a number and as a text', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"a":1}')

    const saved = await saveItems('{"id":"1","a":2}')

    expect(saved).toMatchObject({ added: 0, changed: 1 })
    expect(test.rows('SELECT id, a FROM orders')).toEqual([{ id: '1', a: 2 }])
  })
})
