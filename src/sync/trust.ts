import type { Coverage } from './types.ts'

/**
 * Whether what a reading of a whole list did not see can be said not to be listed. Where there was nothing to count by, an
 * item that came on two pages shows that the list moved; and an item that has lost its key may be one that is missed.
 */
export function isTrusted(
  coverage: Coverage | null,
  { repeated, newRejects }: { repeated: number; newRejects: number },
): boolean {
  if (coverage === 'drifted' || newRejects > 0) return false
  return coverage !== null || repeated === 0
}
