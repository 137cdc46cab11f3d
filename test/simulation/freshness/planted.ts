import { bug, type FreshList, type PlantedBug } from '../planted-bug.ts'

const NO_BOUND = Number.POSITIVE_INFINITY

const REFRESH_ONLY = 'a walk a day, a refresh each 5 minutes'

/** Where more refreshes than that claim what is not true. */
function claims(list: Omit<FreshList, 'policy'>, untrue = 0): Parameters<typeof bug>[1] {
  return { list: { ...list, policy: REFRESH_ONLY }, untrue, wrongRows: NO_BOUND }
}

/** Mistakes in the decisions of refreshes. */
export const REFRESH_BUGS: readonly PlantedBug[] = [
  bug('what the mirror has counts as settled', claims({ order: 'first', arrivals: 20, killed: 0.2 }), [
    'sync/refresh/read-inward.ts',
    'settledAt: rules.settledAt, at: answer.at',
    'settledAt: answer.at - 1, at: answer.at',
  ]),
  bug('a list by update is read without its block of news', claims({ order: 'by update', life: 'busy' }), [
    'sync/refresh/news.ts',
    'inBlock: true,',
    'inBlock: false,',
  ]),
  bug(
    'older pages are read from new to old',
    {
      list: { order: 'first', rows: 20_000, arrivals: 20, policy: 'share 10 %' },
      untrue: 0,
      wrongRows: 3500,
    },
    [
      'sync/refresh/band-credit.ts',
      'cursor > from && cursor <= to + 1 ? cursor - 1 : to',
      'cursor >= from && cursor < to ? cursor + 1 : from',
    ],
  ),
  bug(
    'a refresh takes no step back',
    claims({ order: 'first', removals: 'newest', arrivals: 20, limit: 300 }, 5),
    ['sync/refresh/step-back.ts', 'page > 1 && rise < 0', 'page < 1 && rise < 0'],
  ),
  bug(
    'the page that was the last one is not asked for again',
    claims({ order: 'last', arrivals: 20 }),
    ['sync/refresh/end-reading.ts', '    answers: 0,\n', '    answers: 0,\n    remembered: lastPage,\n'],
    [
      'sync/refresh/read-inward.ts',
      'return goOn(reading, rules, answer, nextInward(reading, answer))',
      'const ask = nextInward(reading, answer)\n  return goOn(reading, rules, answer, ask === reading.remembered ? ask - 1 : ask)',
    ],
  ),
]
