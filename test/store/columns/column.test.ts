import { describe, expect, it } from 'vitest'
import { columnName, foldName } from '../../../src/store/columns/column.ts'

describe('columnName', () => {
  it.each([
    [['id'], 'id'],
    [['customer', 'email'], 'customer__email'],
    [['Customer', 'E-Mail Address'], 'Customer__E-Mail Address'],
    [[''], 'field'],
    [['', ''], 'field__field'],
    [['customer', ''], 'customer__field'],
    [['_id'], 'field_id'],
    [['_id', 'x'], 'field_id__x'],
    [['a', '_id'], 'a___id'],
    [['_'], 'field_'],
    [['a\0b'], 'a_b'],
    [['\0'], 'field_'],
    [['a\ud800'], 'a_'],
    [['😀'], '😀'],
    [['n'.repeat(2000)], 'n'.repeat(2000)],
    [['n'.repeat(2001)], 'n'.repeat(2000)],
    [[`${'n'.repeat(1999)}😀`], `${'n'.repeat(1999)}_`],
  ])('calls %j %s', (path, name) => {
    expect(columnName(path, () => false)).toBe(name)
  })

  it.each([
    [['id'], [], 'id'],
    [['ID'], ['id'], 'ID_2'],
    [['id'], ['id', 'id_2'], 'id_3'],
    [['Id'], ['id', 'id_2', 'id_3'], 'Id_4'],
    [['É'], ['é'], 'É'],
    [['a__b'], ['a__b'], 'a__b_2'],
  ])('with %j beside %j: %s', (path, taken, name) => {
    expect(columnName(path, (candidate) => taken.includes(foldName(candidate)))).toBe(name)
  })
})
