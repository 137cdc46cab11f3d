import { describe, expect, it } from 'vitest'
import { advance } from '../../../src/sync/coverage/advance.ts'
import { resumeReading } from '../../../src/sync/coverage/overlap.ts'
import { forwardTo, startCheckpoint } from '../../../src/sync/coverage/start.ts'
import type {
  CoverageState,
  Frontier,
  LookBack,
  Question,
  WalkRules,
  Why,
} from '../../../src/sync/coverage/state.ts'
import type { PageMatch } from '../../../src/sync/seen/match-page.ts'
import type { Checkpoint, Page } from '../../../src/sync/types.ts'
import { pageOf } from '../../helpers/pages.ts'

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }

/** Page 200 of 400 was read last, of three items each. */
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
  /** Of its three keys, the segment that each stood in; null for a new one. */
  known?: (number | null)[]
  /** How far the last known one is from the place that was asked about. */
  distance?: number
  /** In place of the page of three items. */
  page?: Partial<Page>
}

function answered(
  from: Checkpoint,
  { total = 1200, known = [100, 100, 100], distance = 0, page: changed }: Answer,
): Checkpoint {
  const { page: number = 1, why = 'forward' } = from.ask ?? {}
  const like = { number, next: number + 1, total, lastPage: 400, ...changed }
  const page: Page = pageOf(['1', '2', '3'], like)
  const places = known.map((segment, position) => (segment === null ? null : { segment, position }))
  const isNew = known.filter((segment) => segment === null).length
  const entry = known.findLastIndex((segment) => segment !== null)
  const sighting: PageMatch = {
    ordinal: 1,
    pass: 1,
    why,
    entries: page.items.map((item) => ({ item, id: item.text, reject: '' })),
    newToWalk: isNew,
    newToPass: isNew,
    places,
    placed: places.map((place, position) => place ?? { segment: 300, position }),
    known: entry === -1 ? null : { entry, distance },
  }
  return advance(RULES, from, page, sighting)
}

const asked = ({ ask }: Checkpoint) => (ask ? `${ask.why} ${ask.page}` : 'nothing')

describe('a step back', () => {
  const back = (page: number, more: Partial<CoverageState> = {}) =>
    asking('back', page, { stepBack: { page: 200, total: 1199, rose: false }, ...more })

  it.each<[string, Checkpoint, Answer, string]>([
    [
      'ends at a page with a key that was known before',
      back(199),
      { total: 1199, known: [208, null, null] },
      'forward 201',
    ],
    ['goes on where all is new', back(199), { total: 1199, known: [null, null, null] }, 'back 198'],
    [
      'does not take for known what the step itself has read',
      back(199),
      { total: 1199, known: [210, 210, null] },
      'back 198',
    ],
    ['reads its own page again when the total rose meanwhile', back(199), { total: 1200 }, 'reread 200'],
    ['ends at the first page', back(1), { total: 1199, known: [null, null, null] }, 'forward 201'],
  ])('%s', (_title, from, answer, expected) => {
    expect(asked(answered(from, answer))).toBe(expected)
  })

  it('ends unsettled where no more pages may be asked again', () => {
    const next = answered(back(199, { askedAgain: 300 }), { total: 1199, known: [null, null, null] })

    expect(asked(next)).toBe('forward 201')
    expect(next.state).toMatchObject({ unsettled: true, stepBack: null })
  })

  it('goes on with what it read again as the frontier, whose repeats are none', () => {
    const next = answered(asking('reread', 200), { total: 1201, known: [209, 210, 210] })

    expect(next.state).toMatchObject({ unexplained: 0, frontier: { page: 200, index: 599, total: 1201 } })
  })
})

describe('a page that is read again', () => {
  it('is looked for from the new end where the list has become shorter than it', () => {
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

  it('is due when the reader has come far enough, and for once at the end', () => {
    const due = answered(asking('forward', 201, { anchor: 137 }), { known: [null, null, null] })
    const tooSoon = answered(asking('forward', 201, { anchor: 138 }), { known: [null, null, null] })

    expect([asked(due), asked(tooSoon)]).toEqual(['look 137', 'forward 202'])
  })

  it('goes as far back as ever where the list was seen to move late', () => {
    const still = asking('forward', 201, { anchor: null, watching: false })

    expect(asked(answered(still, { known: [210, null, null] }))).toBe('look 64')
  })

  // Behind the last key of page 136 (place 407 of the list) 192 more stand up to the frontier.
  it.each<[string, Checkpoint, Answer, string, Partial<CoverageState>]>([
    [
      'ends where the list has no more items than are known',
      look(136),
      { distance: 192 },
      'forward 201',
      { anchor: 200, lookBack: null },
    ],
    ['ends where it has fewer', look(136), { distance: 193 }, 'forward 201', { anchor: 200 }],
    ['searches by halves where it has more', look(136), { distance: 191 }, 'look 168', {}],
    [
      'takes what is new behind the last known key off',
      look(136),
      { known: [100, 100, null], distance: 192 },
      'forward 201',
      { foundBehind: 1 },
    ],
    [
      'goes on in the upper half where more stand behind the page',
      look(168, { left: 1 }),
      { distance: 95 },
      'look 184',
      {},
    ],
    ['goes on in the lower half where they do not', look(168, { left: 1 }), { distance: 96 }, 'look 152', {}],
    [
      'ends when all is found',
      look(168, { left: 1 }),
      { known: [100, null, 100], distance: 96 },
      'forward 201',
      { anchor: 200, foundBehind: 1 },
    ],
    [
      'waits for another frontier when the total changed',
      look(136),
      { total: 1201, distance: 192 },
      'forward 201',
      { anchor: 136, lookBack: { ...LOOK, fails: 1, waiting: true } },
    ],
    [
      'gives up when the list moves under it too often',
      look(136, { fails: 12 }),
      { total: 1201 },
      'forward 201',
      { unsettled: true, lookBack: null },
    ],
    [
      'begins anew, with another frontier, when it found nothing',
      look(151, { left: 1, low: 150, high: 151 }),
      { distance: 147 },
      'forward 201',
      { anchor: 136, unsettled: false },
    ],
    [
      'gives up after some rounds',
      look(151, { left: 1, low: 150, high: 151, rounds: 4 }),
      { distance: 147 },
      'forward 201',
      { unsettled: true },
    ],
  ])('%s', (_title, from, answer, expected, state) => {
    const next = answered(from, answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })
})

describe('a walk that goes on after an interruption', () => {
  const resumed = (state: Partial<CoverageState> = {}) => resumeReading(RULES, asking('forward', 201, state))

  it.each<[string, Answer, string, Partial<CoverageState>]>([
    [
      'is where it was when its last key is where it was',
      { known: [210, 210, 210] },
      'forward 201',
      { passMoved: false, unexplained: 0 },
    ],
    [
      'reads what is new behind its last key',
      { total: 1199, known: [210, 210, null] },
      'forward 201',
      { passMoved: true, unexplained: 0 },
    ],
    [
      'goes back where nothing is known',
      { total: 1190, known: [null, null, null] },
      'overlap 199',
      { passMoved: true },
    ],
    [
      'jumps to where its last key went',
      { total: 1209, known: [205, 205, 205], distance: 9 },
      'overlap 203',
      { unexplained: 0 },
    ],
  ])('%s', (_title, answer, expected, state) => {
    const next = answered(resumed(), answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })

  it('owes an explanation for what was pushed without a rise of the total', () => {
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

  it('asks for that page even where no more may be asked again, and it does not count', () => {
    const from = resumed({ askedAgain: 400 })

    expect(asked(from)).toBe('overlap 200')
    expect(answered(from, { known: [210, 210, 210] }).state.askedAgain).toBe(400)
  })

  it('comes to the end of a step back first', () => {
    const from = resumeReading(
      RULES,
      asking('back', 199, { stepBack: { page: 200, total: 1199, rose: false } }),
    )

    const next = answered(from, { total: 1199, known: [208, null, null] })

    expect([asked(from), asked(next)]).toEqual(['back 199', 'overlap 200'])
  })

  it('has nothing to find where the list was read to its end', () => {
    const ended = { ...asking('front', 2), nextPage: null }

    expect(resumeReading(RULES, ended)).toBe(ended)
  })
})

describe('the end of a pass', () => {
  const ended = (why: Why, page: number, state: Partial<CoverageState> = {}): Checkpoint => ({
    ...asking(why, page, { anchor: 200, passMoved: true, ...state }),
    nextPage: null,
  })

  it.each<[string, Checkpoint, Answer, string, Partial<CoverageState>]>([
    [
      'reads the front on while it holds something new',
      ended('front', 1),
      { known: [null, null, null] },
      'front 2',
      { found: 3 },
    ],
    [
      'has read the front where two keys follow each other as before',
      ended('front', 1),
      { known: [null, 1, 1] },
      'nothing',
      { found: 1 },
    ],
    [
      'knows two keys that follow each other though the last one stood on another page',
      ended('front', 1),
      { known: [1, 1, 2] },
      'nothing',
      { found: 0 },
    ],
    [
      'reads the front on while no two keys follow each other',
      ended('front', 1),
      { known: [1, 2, 3] },
      'front 2',
      {},
    ],
    [
      'takes samples where items came twice that nothing explains',
      ended('front', 1, { unexplained: 1 }),
      {},
      'sample 200',
      { closed: { spotCheck: false, front: true, samples: false } },
    ],
    [
      'takes none where an item was moved',
      ended('front', 1, { unexplained: 1, relocated: 1 }),
      {},
      'nothing',
      {},
    ],
    [
      'looks back from sample to sample',
      ended('sample', 200, { unexplained: 1, closed: { spotCheck: false, front: true, samples: false } }),
      {},
      'look 160',
      {},
    ],
    [
      'is content with a still page that is as it was',
      ended('spot-check', 148, { passMoved: false }),
      {},
      'nothing',
      { passMoved: false, unsettled: false },
    ],
    [
      'knows of a movement without a sign by a still page that changed',
      ended('spot-check', 148, { passMoved: false }),
      { known: [100, 100, 101] },
      'front 1',
      { passMoved: true, unsettled: true },
    ],
  ])('%s', (_title, from, answer, expected, state) => {
    const next = answered(from, answer)

    expect(asked(next)).toBe(expected)
    expect(next.state).toMatchObject(state)
  })
})
