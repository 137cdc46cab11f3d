import * as fc from 'fast-check'

const oneOf = (words: string) => fc.constantFrom(...words.split(' '))
const digits = fc.stringMatching(/^\d{1,22}$/)
const whole = fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,21}$/))
const exponent = fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '-', '+'), fc.nat({ max: 420 }))

/** Texts of JSON numbers, often awkward ones. */
export const numberTexts = fc.oneof(
  oneOf('-0 0 0.0 1.10 20.0 2e1 1e400 -1e-400 1e21 1e+21 1E5 0.0000001'),
  oneOf('9007199254740993 9007199254740992 9223372036854775807 9223372036854775808'),
  oneOf('-9223372036854775808 1152921504606847000 9007199254740993.0 9007199254740993e0'),
  fc.integer().map(String),
  fc
    .tuple(fc.constantFrom('', '-'), whole, fc.option(digits), fc.option(exponent))
    .map(
      ([sign, int, fraction, exp]) => sign + int + (fraction ? `.${fraction}` : '') + (exp?.join('') ?? ''),
    ),
)

/**
 * Any character of Unicode: half of a pair is none. What fast-check calls `unit: 'binary'`, but that makes a table of a million entries first.
 */
export const anyCharacter = fc
  .nat({ max: 0x10ffff - 0x800 })
  .map((number) => String.fromCodePoint(number < 0xd800 ? number : number + 0x800))

/** Names of fields as an API may send them, with all that can confuse a path or a column name. */
export const names = fc.oneof(
  oneOf(
    'a A b id a.b _ _id a__b a__text field " a"b \\ \\" [0] a[1] ] $ # 0 -1 it\'s ` é É 日本 😀 __proto__',
  ),
  fc.constantFrom('', 'a b', '\n', '\0', '\ud800'),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
)

/** Texts that look like numbers, or hold the mark of one (see `exact.ts`). */
const misleading = oneOf('1.10 :1.10, [-0] 12345678901234567890 \\ "1e5 \x000 \\u00000')

const spaces = fc.constantFrom('', '', '', ' ', '\n\t')
const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('null', 'true', 'false'),
    numberTexts,
    fc.oneof(fc.string(), names, misleading).map((text) => JSON.stringify(text)),
    fc
      .tuple(spaces, fc.array(tie('value'), { maxLength: 3 }))
      .map(([space, list]) => `[${list.join(`${space},${space}`)}]`),
    tie('object'),
  ),
  object: fc
    .tuple(spaces, fc.array(fc.tuple(names, tie('value')), { maxLength: 5 }))
    .map(([space, fields]) => {
      const parts = fields.map(([name, text]) => `${JSON.stringify(name)}:${space}${text}${space}`)
      return `{${parts.join(',')}}`
    }),
}))

/** JSON texts, some with a name given twice. */
export const jsonTexts = value

const crumbs = fc.oneof(
  fc.constantFrom('1.10', '-0', '"a"', ''),
  fc.stringMatching(/^[{}[\]:,"\\+.0e1 \n-]$/),
)

/** The same texts with one place replaced: few are still JSON. */
export function spoiled(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(texts, fc.nat(), fc.nat({ max: 2 }), crumbs).map(([text, place, many, crumb]) => {
    const at = place % (text.length + 1)
    return text.slice(0, at) + crumb + text.slice(at + many)
  })
}
