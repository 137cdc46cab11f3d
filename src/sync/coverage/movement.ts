import type { CoverageState } from './account.ts'

/** What a pass saw of the list's movement, as numbers of answers that showed some, where it is not items. What one answer shows is one movement. */
export interface Movement {
  /** The total rose, and nothing came again: something was added ahead of the reader. */
  rises: number
  /** The total fell, and nothing came again; and of these falls those behind which an unread item was found. */
  falls: number
  pulled: number
  /** Items came again that no rise of the total explains: something was moved there. */
  pushes: number
  /** Looks back that found one item, at a boundary between two answers: it was skipped without a sign. */
  skips: number
  /** Items that looks back found several at a time: as many went at one stroke, and as many came. */
  together: number
  /** Items that no earlier pass of the walk had seen. */
  newToWalk: number
}

export const NO_MOVEMENT: Movement = {
  rises: 0,
  falls: 0,
  pulled: 0,
  pushes: 0,
  skips: 0,
  together: 0,
  newToWalk: 0,
}

/** The account after so many more movements of a kind; of a walk that began before they were counted, unchanged. */
export function counting(account: CoverageState, kind: keyof Movement, more = 1): CoverageState {
  const { movement } = account
  if (movement === null || more === 0) return account
  return { ...account, movement: { ...movement, [kind]: movement[kind] + more } }
}
