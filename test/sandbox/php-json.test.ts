import { describe, expect, it } from 'vitest'
import { exactNumber, phpJson } from '../../src/sandbox/php-json.ts'

describe('phpJson', () => {
  it.each([
    ['slashes are escaped', 'a/b', String.raw`"a\/b"`],
    ['letters beyond ASCII are escaped in lower case', 'Zoë É', String.raw`"Zo\u00eb \u00c9"`],
    ['a sign beyond 16 bits becomes two', '🙂', String.raw`"\ud83d\ude42"`],
    ['quotes and line breaks stay JSON', 'a"\n', String.raw`"a\"\n"`],
    ['there are no spaces', { a: [1, null, true] }, '{"a":[1,null,true]}'],
    ['a whole float loses its fraction', { price: 20.0 }, '{"price":20}'],
    [
      'an exact number keeps every digit',
      { n: exactNumber('12345678901234567890') },
      '{"n":12345678901234567890}',
    ],
  ])('%s', (_, value, text) => {
    expect(phpJson(value)).toBe(text)
  })
})
