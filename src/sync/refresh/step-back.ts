import type { RefreshAnswer } from './answer.ts'
import { type EndReading, type ReadingRules, riseSince, type StepBack } from './end-reading.ts'
import { countSlid, isMet } from './news.ts'

/**
 * Whether something may have slid past the reading: an item is gone from the pages already read, since the total fell and
 * nothing came twice. From `last` inwards a deletion moves rows that were read to pages that were not.
 */
export function hasSlid(before: EndReading, reading: EndReading, { page, rows }: RefreshAnswer): boolean {
  const top = reading.top ?? 1
  const isInside = reading.end === 'first' && page > 1
  return isInside && riseSince(before, reading) < 0 && !rows.some((row) => isMet(row, top))
}

export function stepBack(reading: EndReading, { page }: RefreshAnswer): EndReading {
  return { ...reading, ask: page - 1, stepBack: { from: page, answer: reading.answers, rose: false } }
}

/**
 * An answer on the way back; it ends at a page that holds a key that was read before it began.
 * @returns The reading with the page to ask, or with none where it is at its end.
 */
export function lookBehind(
  before: EndReading,
  noted: EndReading,
  back: StepBack,
  rules: ReadingRules,
  { page, rows, at }: RefreshAnswer,
): EndReading {
  const rose = back.rose || riseSince(before, noted) > 0
  const top = noted.top ?? 1
  const reading = { ...noted, news: countSlid(noted.news, rows, { settledAt: rules.settledAt, at, top }) }
  const isJoined = rows.some(({ metIn }) => metIn !== null && metIn >= top && metIn < back.answer)
  if (!isJoined && page > 1) return { ...reading, ask: page - 1, stepBack: { ...back, rose } }
  // What was put in front meanwhile has pushed an item from the pages before to the one where it began.
  return { ...reading, ask: rose ? back.from : null, stepBack: null }
}
