import { KINDS } from './kinds.ts'
import { type History, isTrusted, live, type Reading, SETTING } from './measure.ts'

/** What many histories of a kind came to, in one line. */
function summarize(histories: readonly History[]): Record<string, string | number> {
  const all = histories.flatMap(({ readings }) => readings)
  const first = histories.flatMap(({ readings }) => readings.slice(0, 1))
  const trusted = all.filter(isTrusted)
  const extras = all.map(({ extra }) => extra).toSorted((a, b) => a - b)
  return {
    walks: all.length,
    mean: round(extras.reduce((sum, extra) => sum + extra, 0) / extras.length),
    p99: round(extras[Math.floor(extras.length * 0.99)] ?? 0),
    max: round(extras.at(-1) ?? 0),
    'one pass': share(all, ({ passes }) => passes === 1),
    steady: share(all, ({ coverage }) => coverage === 'steady'),
    repaired: share(all, ({ coverage }) => coverage === 'repaired'),
    drifted: share(all, ({ coverage }) => coverage === 'drifted'),
    'missing walks': share(trusted, ({ missed }) => missed > 0),
    'missed a walk': round(
      trusted.reduce((sum, { missed }) => sum + missed, 0) / Math.max(trusted.length, 1),
      4,
    ),
    'first: missing': share(first.filter(isTrusted), ({ missed }) => missed > 0),
    'wrong pairs': histories.filter(({ wronglyRemoved }) => wronglyRemoved > 0).length,
  }
}

function share(readings: readonly Reading[], is: (reading: Reading) => boolean): number {
  return percent(readings.filter(is).length, readings.length)
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : round((100 * part) / whole)
}

function round(value: number, digits = 2): number {
  return Number(value.toFixed(digits))
}

/** Measures some histories of each kind that is named, or of all. */
export function* measureAll(
  histories: number,
  names: readonly string[] = Object.keys(KINDS),
  seed = 1,
  setting = SETTING,
) {
  for (const name of names) {
    const kind = KINDS[name]
    if (!kind) throw new Error(`there is no kind ${name}`)
    const lived = Array.from({ length: histories }, (_, index) => live(kind, seed + index, setting))
    yield { kind: name, ...summarize(lived) }
  }
}
