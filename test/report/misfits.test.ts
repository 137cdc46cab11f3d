import { expect, it } from 'vitest'
import { misfitNotes } from '../../src/report/misfits.ts'

it('names each column of values that did not fit, ten of them', () => {
  const columns = Array.from({ length: 12 }, (_, index) => ({
    collection: 'orders',
    column: `c${index}__text`,
    rows: index + 1,
  }))

  const notes = misfitNotes(columns)

  expect(notes.slice(0, 2)).toEqual([
    'orders.c0__text has the values of 1 row that did not fit the column beside it',
    'orders.c1__text has the values of 2 rows that did not fit the column beside it',
  ])
  expect(notes.slice(10)).toEqual(['2 further columns of such values: see sync_columns'])
  expect(misfitNotes([])).toEqual([])
})
