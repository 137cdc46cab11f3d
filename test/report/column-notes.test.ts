import { describe, expect, it } from 'vitest'
import { columnNotes } from '../../src/report/column-notes.ts'
import type { ColumnTrouble } from '../../src/store/core/column-counts.ts'

const TROUBLE: ColumnTrouble = {
  organization_id: '1',
  organization: 'acme',
  collection: 'orders',
  view: null,
  column: 'total_cents',
  type: 'INTEGER',
  text_column: 'total_cents__text',
  misfits: 0,
  objects: 0,
  misfit: null,
  emptied: 0,
}

const notes = (...troubles: Partial<ColumnTrouble>[]) =>
  columnNotes(
    troubles.map((one) => ({ ...TROUBLE, ...one })),
    [
      { organization_id: '1', collection: 'orders', configured: 1, rows: 2000 },
      { organization_id: '2', collection: 'orders', configured: 0, rows: 500 },
    ],
  )

describe('a column whose values do not fit', () => {
  it.each<[Partial<ColumnTrouble>, string]>([
    [{ misfit: 'text' }, 'a text among numbers'],
    [{ misfit: 'boolean', type: 'TEXT' }, 'a boolean among texts'],
    [{ misfit: 'fraction' }, 'a fraction among whole numbers'],
    [{ misfit: 'large' }, 'a number with too many digits among numbers'],
    [{ misfit: 'fitting' }, 'a value that fits now'],
  ])('is told with how many rows and an example: %o', (trouble, example) => {
    expect(notes({ ...trouble, misfits: 1200 })).toEqual([
      `orders.total_cents: the values of 1,200 of 2,000 rows do not fit it and are, as text, in total_cents__text (acme: ${example})`,
    ])
  })

  it('is told of elements by the name of their view', () => {
    expect(
      notes({ misfits: 2, misfit: 'text', view: 'orders__items', column: 'qty', text_column: 'qty__text' }),
    ).toEqual([
      'orders__items.qty: the values of 2 elements do not fit it and are, as text, in qty__text (acme: a text among numbers)',
    ])
  })

  it('is not said to have objects beside it', () => {
    expect(notes({ misfits: 1, objects: 1, misfit: 'object' })).toEqual([
      'orders.total_cents: the value of 1 of 2,000 rows does not fit it (acme: an object among numbers)',
    ])
    expect(notes({ misfits: 3, objects: 1, misfit: 'text' })).toEqual([
      'orders.total_cents: the values of 3 of 2,000 rows do not fit it and are, as text, in total_cents__text, but for 1 object with columns of their own (acme: a text among numbers)',
    ])
  })

  it('is told once for all organizations, with the one that has most', () => {
    expect(
      notes({ misfits: 1, misfit: 'list' }, { misfits: 3, misfit: 'text', organization: 'globex' }),
    ).toEqual([
      'orders.total_cents: the values of 4 of 2,000 rows do not fit it and are, as text, in total_cents__text (globex and 1 other organization: a text among numbers)',
    ])
    expect(notes({ misfits: 1, misfit: 'text' })).toEqual([
      'orders.total_cents: the value of 1 of 2,000 rows does not fit it and is, as text, in total_cents__text (acme: a text among numbers)',
    ])
  })
})

describe('a column that became empty', () => {
  it('is told once for all organizations', () => {
    expect(notes({ emptied: 1 }, { emptied: 1, organization: 'globex' }, { misfits: 0 })).toEqual([
      'orders.total_cents: no row of acme and 1 other organization has a value any more, after earlier full walks had found some',
    ])
    expect(notes({ emptied: 1, view: 'orders__items', column: 'qty' })).toEqual([
      'orders__items.qty: no element of acme has a value any more, after earlier full walks had found some',
    ])
  })
})

it('tells nothing of a list that is no longer configured, whose values no walk reads any more', () => {
  const gone = { organization_id: '2', organization: 'globex' }

  expect(notes({ ...gone, emptied: 1 }, { ...gone, misfits: 3, misfit: 'text' })).toEqual([])
  expect(notes({ emptied: 1 }, { ...gone, emptied: 1 })[0]).toMatch(/: no row of acme has a value/)
})

it('tells of ten columns, and how many more there are', () => {
  const many = Array.from({ length: 12 }, (_, number) => ({ column: `c${number}`, emptied: 1 as const }))

  expect(notes(...many)).toHaveLength(11)
  expect(notes(...many).at(-1)).toBe(
    '2 further columns with such values, or empty: see misfits and filled in sync_columns',
  )
  expect(notes()).toEqual([])
})

it('writes names from outside so that they move no cursor', () => {
  const [note = ''] = notes({ emptied: 1, column: 'b\n """ INTEGER\u202e', organization: 'a\u001b[2J' })

  expect(note).toMatch(/^orders\.b\\u\{a\} """ INTEGER\\u\{202e\}: no row of a\\u\{1b\}\[2J has/)
})
