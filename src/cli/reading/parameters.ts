import type { Parameters } from '../../store/sqlite/read/query.ts'

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

/** The values of `--param NAME=VALUE`; `:NAME=VALUE` is understood, too. The last of several of one name counts. */
export function parametersOf(typed: readonly (readonly [name: string, value: string])[]): Parameters {
  return new Map(typed.map(([name, value]) => [name.replace(/^[:@$]/, ''), parameterValue(value)]))
}

/**
 * What is written as SQLite itself writes a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
