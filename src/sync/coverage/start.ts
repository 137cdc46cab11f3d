import type { Checkpoint, WalkOutcome } from '../types.ts'
import { forwardTo } from './observe.ts'
import type { CoverageState, Movement } from './state.ts'
import { NO_TOTALS, totalsOfNextPass } from './totals.ts'

export const NO_MOVEMENT: Movement = {
  rises: 0,
  falls: 0,
  pulled: 0,
  pushes: 0,
  skips: 0,
  together: 0,
  newToWalk: 0,
}

const FRESH_PASS = {
  firstLastPage: null,
  lastPage: 0,
  paginated: true,
  perPage: null,
  passTotal: null,
  passMoved: false,
  passShort: false,
  passAnswers: 0,
  passDistinct: 0,
  passRepeated: 0,
  askedAgain: 0,
  pagesWithoutNews: 0,
  frontier: null,
  recent: [],
  firstSegment: null,
  anchor: null,
  unexplained: 0,
  carried: 0,
  relocated: 0,
  found: 0,
  foundBehind: 0,
  movement: NO_MOVEMENT,
  unsettled: false,
  stepBack: null,
  overlap: null,
  lookBack: null,
  sample: null,
  closed: { spotCheck: false, front: false, samples: false },
} satisfies Partial<CoverageState>

/**
 * The checkpoint of a new walk.
 * @param lastWalk The job's last complete full walk: if its list moved, this walk looks back from the start; if its
 * total was off, this walk doubts the total.
 */
export function startCheckpoint(
  firstPage: number,
  lastWalk: Pick<WalkOutcome, 'coverage' | 'totalOff'> | null = null,
): Checkpoint {
  const watching = lastWalk?.coverage === 'repaired' || lastWalk?.coverage === 'drifted'
  const isDoubted = (lastWalk?.totalOff ?? null) !== null
  return {
    pass: 1,
    nextPage: firstPage,
    ask: forwardTo(firstPage),
    state: {
      ...FRESH_PASS,
      counted: true,
      firstTotal: null,
      totalChanged: false,
      totals: { ...NO_TOTALS, isDoubted },
      moved: false,
      repeatedAcrossPages: false,
      watching,
    },
  }
}

/** The checkpoint of the next pass: what the walk has seen stays, the counts of the pass start at 0. */
export function nextPass({ pass, state }: Checkpoint): Checkpoint {
  const { counted, firstTotal, totalChanged, moved, repeatedAcrossPages } = state
  const watching = state.watching || moved || totalChanged
  const movement = state.movement && NO_MOVEMENT
  const totals = totalsOfNextPass(state)
  return {
    pass: pass + 1,
    nextPage: 1,
    ask: forwardTo(1),
    state: {
      ...FRESH_PASS,
      counted,
      firstTotal,
      totalChanged,
      totals,
      moved,
      repeatedAcrossPages,
      watching,
      movement,
    },
  }
}
