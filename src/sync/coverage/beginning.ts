import type { Checkpoint } from '../types.ts'
import type { Account, Question } from './account.ts'

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
  stale: 0,
  edge: null,
  recent: [],
  firstSegment: null,
  anchor: null,
  unpaid: 0,
  owed: 0,
  wanderers: 0,
  found: 0,
  foundBehind: 0,
  unsettled: false,
  stepBack: null,
  overlap: null,
  lookBack: null,
  sample: null,
  closed: { still: false, front: false, samples: false },
} satisfies Partial<Account>

/** Where a walk begins. */
export function startCheckpoint(firstPage: number): Checkpoint {
  return {
    pass: 1,
    nextPage: firstPage,
    ask: forwardTo(firstPage),
    account: {
      ...FRESH_PASS,
      counted: true,
      firstTotal: null,
      totalChanged: false,
      moved: false,
      crossed: false,
      watching: false,
    },
  }
}

/** The same, for a list that is expected to move. */
export function watchingFromStart(from: Checkpoint): Checkpoint {
  return { ...from, account: { ...from.account, watching: true } }
}

/** The next pass over the same list: what was seen stays seen, the pass's own counts begin anew. */
export function nextPass({ pass, account }: Checkpoint): Checkpoint {
  const { counted, firstTotal, totalChanged, moved, crossed } = account
  const watching = account.watching || moved || totalChanged
  return {
    pass: pass + 1,
    nextPage: 1,
    ask: forwardTo(1),
    account: { ...FRESH_PASS, counted, firstTotal, totalChanged, moved, crossed, watching },
  }
}

export function forwardTo(page: number): Question {
  return { why: 'forward', page, until: null, before: null }
}
