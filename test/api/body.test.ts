import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { breaksOff } from '../../src/api/body.ts'
import { jsonTexts } from '../json/arbitrary.ts'

const spaces = fc.stringMatching(/^[ \n\r\t]{0,3}$/)

describe('a body that breaks off', () => {
  it('is detected wherever it may break', () => {
    fc.assert(
      fc.property(
        jsonTexts.filter((text) => text.startsWith('{')),
        (text) => {
          const prefixes = Array.from({ length: text.length - 1 }, (_, index) => text.slice(0, index + 1))

          expect(prefixes.filter((prefix) => !breaksOff(prefix))).toEqual([])
        },
      ),
    )
  })

  it('is not a whole one', () => {
    fc.assert(
      fc.property(jsonTexts, spaces, (text, space) => {
        expect(breaksOff(space + text + space)).toBe(false)
      }),
    )
  })

  it.each(['{"data":[1],}', "{'data':[1]}", '{"data":[1]}]', '[object Object]', 'text [', ''])(
    'is not one that is wrong otherwise: %j',
    (text) => {
      expect(breaksOff(text)).toBe(false)
    },
  )
})
