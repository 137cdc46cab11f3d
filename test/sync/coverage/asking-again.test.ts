import { describe, expect, it } from 'vitest'
import { advance } from '../../../src/sync/coverage/advance.ts'
import { forwardTo } from '../../../src/sync/coverage/observe.ts'
import { resumeReading } from '../../../src/sync/coverage/overlap.ts'
import {
  type CoverageState,
  type Frontier,
  type LookBack,
  type Question,
  startCheckpoint,
  type WalkRules,
  type Why,
} from '../../../src/sync/coverage/state.ts'
import type { PageMatch } from '../../../src/sync/seen.ts'
import type { Checkpoint, Page } from '../../../src/sync/types.ts'
import { pageOf } from '../../helpers/pages.ts'

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }

/** The state after page 200 of 400, with three items each. */
const FRONTIER: Frontier = { page: 200, place: { segment: 210, position: 2 }, index: 599, total: 1200 }
const READ: Partial<CoverageState> = {
  firstTotal: 1200,
  passTotal: 1200,
  firstLastPage: 400,
  lastPage: 400,
  perPage: 3,
  passAnswers: 210,
  passDistinct: 600,
  frontier: FRONTIER,
  recent: [208, 209, 210],
  firstSegment: 1,
  watching: true,
  anchor: 150,
}

const LOOK: LookBack = {
  frontier: FRONTIER,
  anchor: 136,
  upTo: 200,
  low: 136,
  high: 199,
  left: null,
  rounds: 1,
  fails: 0,
  waiting: false,
}

function asking(why: Why, page: number, state: Partial<CoverageState> = {}): Checkpoint {
  const ask: Question = { ...forwardTo(page), why }
  return { pass: 1, nextPage: 201, ask, state: { ...startCheckpoint(1).state, ...READ, ...state } }
}

interface Answer {
  total?: number
  /** The former segment of each of its three keys; null for a new one. */
  known?: (number | null)[]
  /** The distance of the last known key to the position asked about. */
  distance?: number
  /** Changes to the page of three items. */
  page?: Partial<Page>
}

function answered(
  from: Checkpoint,
  { total = 1200, known = [100, 100, 100], distance = 0, page: changed }: Answer,
): Checkpoint {
  const { page: number = 1, why = 'forward' } = from.ask ?? {}
  const like = { number, next: number + 1, total, lastPage: 400, ...changed }
  const page: Page = pageOf(['1', '2', '3'], like)
  const previous = known.map((segment, position) => (segment === null ? null : { segment, position }))
  const isNew = known.filter((segment) => segment === null).length
  const index = known.findLastIndex((segment) => segment !== null)
  const match: PageMatch = {
    ordinal: 1,
    pass: 1,
    why,
    items: page.items.map((item) => ({ item, id: item.text, reject: '' })),
    newToWalk: isNew,
    newToPass: isNew,
    previous,
    positions: previous.map((place, position) => place ?? { segment: 300, position }),
    known: index === -1 ? null : { index, distance },
  }
  return advance(RULES, from, page, match)
}

/** No key of the page was known. */
const ALL_NEW = [null, null, null]
const ONE_NEW = { known: [100, 100, null] }
const ONE_AMONG = { known: [100, null, 100] }
const GIVEN_UP = { unsettled: true }

const asked = ({ ask }: Checkpoint) => (ask ? `${ask.why} ${ask.page}` : 'nothing')

describe('a step back', () => {
  const back = (page: number, more: Partial<CoverageState> = {}) =>
    asking('back', page, {
      frontier: { ...FRONTIER, total: 1199 },
      stepBack: { page: 200, total: 1199, rose: false },
      ...more,
    })

  const BACK = back(199)

  it.each<[string, Checkpoint, Answer, string]>([
    ['counts none that it read itself as known', BACK, { total: 1199, known: [210, 210, null] }, 'back 198'],
    ['reads its own page again when the total rose', BACK, { total: 1200 }, 'reread 200'],
  ])('%s', (_title, from, answer, expected) => {
    expect(asked(answered(from, answer))).toBe(expected)
  })

  it('ends unsettled when no more pages may be asked again', () => {
    const next = answered(back(199, { askedAgain: 300 }), { total: 1199, known: ALL_NEW })

    expect(asked(next)).toBe('forward 201')
    expect(next.state).toMatchObject({ unsettled: true, stepBack: null })
  })

  it('ends unsettled when its own page may not be asked again', () => {
    const next = answered(back(199, { askedAgain: 299 }), { total: 1198 })

    expect(asked(next)).toBe('forward 201')
    expect(next.state).toMatchObject({ unsettled: true, stepBack: null })
  })

  it('takes the reread page as the frontier, and counts no repeats on it', () => {
    const next = answered(asking('reread', 200), { total: 1201, known: [209, 210, 210] })

    expect(next.state).toMatchObject({ unexplained: 0, frontier: { page: 200, index: 599, total: 1201 } })
  })
})

describe('a reread page', () => {
  it('is searched from the new end of a list that became shorter', () => {
    const waiting = { ...LOOK, waiting: true }
    const from = { ...asking('reread', 200, { anchor: 136, lookBack: waiting }), nextPage: null }
    const beyond: Answer = { total: 597, known: [], page: { items: [], next: null, lastPage: 199 } }

    const next = answered(from, beyond)

    expect(asked(next)).toBe('overlap 199')
    expect(next.state).toMatchObject({ passMoved: true })
  })
})

describe('a look back', () => {
  const look = (page: number, changed: Partial<LookBack> = {}) =>
    asking('look', page, { anchor: 136, lookBack: { ...LOOK, ...changed } })

  it('is due when the reader is far enough, and once at the end', () => {
    const due = answered(asking('forward', 201, { anchor: 137 }), { known: [null, null, null] })
    const tooSoon = answered(asking('forward', 201, { anchor: 138 }), { known: [null, null, null] })

    expect([asked(due), asked(tooSoon)]).toEqual(['look 137', 'forward 202'])
  })

  it('goes back to the same page if the list moves late', () => {
    const still = asking('forward', 201, { anchor: null, watching: false })

    expect(asked(answered(still, { known: [210, null, null] }))).toBe('look 64')
  })

  // From the last key of page 136 (index 407) to the frontier there are 192 keys.
  const FIRST = look(136)
  const HALVED = look(168, { left: 1 })
  const LAST = { left: 1, low: 150, high: 151 }

  it.each<[string, Checkpoint, Answer, string, Partial<CoverageState>]>([
    ['ends if there are fewer', FIRST, { distance: 193 }, 'forward 201', { anchor: 200 }],
    ['searches by halves if there are more', FIRST, { distance: 191 }, 'look 168', {}],
    [
      'subtracts new keys at the end',
      FIRST,
      { ...ONE_NEW, distance: 192 },
      'forward 201',
      { foundBehind: 1 },
    ],
    ['continues in the upper half if there are more', HALVED, { distance: 95 }, 'look 184', {}],
    ['continues in the lower half if not', HALVED, { distance: 96 }, 'look 152', {}],
    ['ends when all are found', HALVED, { ...ONE_AMONG, distance: 96 }, 'forward 201', { foundBehind: 1 }],
    ['gives up at last', look(136, { fails: 12 }), { total: 1201 }, 'forward 201', GIVEN_UP],
    [
      'starts again, having found nothing',
      look(151, LAST),
      { distance: 147 },
      'forward 201',
      { anchor: 136 },
    ],
    ['ends after some rounds', look(151, { ...LAST, rounds: 4 }), { distance: 147 }, 'forward 201', GIVEN_UP],
  ])('%s', (_title, from, answer, expected, state) => {
    const next = answered(from, answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })
})

describe('a resumed walk', () => {
  const resumed = (state: Partial<CoverageState> = {}) => resumeReading(RULES, asking('forward', 201, state))

  const STILL = { passMoved: false, unexplained: 0 }

  it.each<[string, Answer, string, Partial<CoverageState>]>([
    ['continues where it stopped if nothing moved', { known: [210, 210, 210] }, 'forward 201', STILL],
    ['goes back if no key is known', { total: 1190, known: ALL_NEW }, 'overlap 199', { passMoved: true }],
    ['jumps to its last key', { total: 1209, known: [205, 205, 205], distance: 9 }, 'overlap 203', {}],
  ])('%s', (_title, answer, expected, state) => {
    const next = answered(resumed(), answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })

  it('counts items as unexplained that slid without a rise of the total', () => {
    const from = resumed()
    const there = answered(
      { ...from, ask: { ...forwardTo(203), why: 'overlap' } },
      { total: 1204, known: [210, 210, 210] },
    )

    expect(there.state).toMatchObject({
      unexplained: 5,
      passMoved: true,
      frontier: { page: 203, index: 608 },
    })
  })

  it('asks for that page even if no more may be asked again, and does not count it', () => {
    const from = resumed({ askedAgain: 400 })

    expect(asked(from)).toBe('overlap 200')
    expect(answered(from, { known: [210, 210, 210] }).state.askedAgain).toBe(400)
  })

  it('finishes a step back first', () => {
    const from = resumeReading(
      RULES,
      asking('back', 199, {
        frontier: { ...FRONTIER, total: 1199 },
        stepBack: { page: 200, total: 1199, rose: false },
      }),
    )

    const next = answered(from, { total: 1199, known: [208, null, null] })

    expect([asked(from), asked(next)]).toEqual(['back 199', 'overlap 200'])
  })

  it('has nothing to find if the list was read to its end', () => {
    const ended = { ...asking('front', 2), nextPage: null }

    expect(resumeReading(RULES, ended)).toBe(ended)
  })
})

describe('the end of a pass', () => {
  const ended = (why: Why, page: number, state: Partial<CoverageState> = {}): Checkpoint => ({
    ...asking(why, page, { anchor: 200, passMoved: true, ...state }),
    nextPage: null,
  })

  const SAMPLING = { closed: { spotCheck: false, front: true, samples: false } }
  const FRONT = ended('front', 1)
  const SPOT = ended('spot-check', 148, { passMoved: false })
  const MOVED = { passMoved: true, unsettled: true }

  it.each<[string, Checkpoint, Answer, string, Partial<CoverageState>]>([
    ['ends the front at two old neighbours', FRONT, { known: [null, 1, 1] }, 'nothing', { found: 1 }],
    ['knows neighbours on two pages', FRONT, { known: [1, 1, 2] }, 'nothing', { found: 0 }],
    ['reads on in front without neighbours', FRONT, { known: [1, 2, 3] }, 'front 2', {}],
    ['takes samples for repeats', ended('front', 1, { unexplained: 1 }), {}, 'sample 200', SAMPLING],
    ['takes none for relocated ones', ended('front', 1, { unexplained: 1, relocated: 1 }), {}, 'nothing', {}],
    ['looks back between samples', ended('sample', 200, { unexplained: 1, ...SAMPLING }), {}, 'look 160', {}],
    ['ends when the spot check finds nothing', SPOT, {}, 'nothing', { passMoved: false, unsettled: false }],
    ['notices that the page is another', SPOT, { known: [100, 100, 101] }, 'front 1', MOVED],
  ])('%s', (_title, from, answer, expected, state) => {
    const next = answered(from, answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })
})
