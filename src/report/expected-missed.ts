/** Up to here it is not worth a word. */
const WORTH_TELLING = 0.01

/** Whether so many items, missed by a walk on average, are told. */
export function isWorthTelling(expectedMissed: number | null): expectedMissed is number {
  return expectedMissed !== null && expectedMissed > WORTH_TELLING
}

/** What is told of them behind the coverage of a walk; nothing where they are not worth it. */
export function missedText(expectedMissed: number | null): string {
  if (!isWorthTelling(expectedMissed)) return ''
  return ` (such a walk misses ${Number(expectedMissed.toPrecision(2))} items on average)`
}
