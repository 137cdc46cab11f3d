import type { TestServer } from '../../helpers/postgres-server.ts'
import { createVirtualClock, type VirtualClock } from '../../simulation/clock.ts'
import { createPace, openWorkers, type PlayedList } from './workers.ts'

/** What is played: the lists of one tick, and the workers that read them. */
export interface Setting {
  name: string
  workers: number
  /** By the order of the configuration. */
  lists: readonly PlayedList[]
  /** Requests a minute of each token. */
  perMinute: number
  /** How long an answer takes, in milliseconds. */
  latencyMs: number
}

/** How the lists fared. Times in milliseconds of the simulation, from the tick on. */
export interface Outcome {
  setting: Setting
  /** By token: how much of its budget was used from the tick to the end of its last list, 0 to 1. */
  used: number[]
  /** By token: how long its first list waited. */
  firstWaits: number[]
  /** Of all lists the longest wait for a worker. */
  longestWait: number
  /** When the last list was read. */
  took: number
  /** Lists that were read twice, or never. */
  wrong: number
  /** That the workers asked the queue. */
  statements: number
}

/** A minute before the tick of an hourly schedule, in the past: the queue believes no tick of the future. */
const START = Date.UTC(2026, 0, 1, 11, 59)
const TICK = START + 60_000

const LONGEST_MS = 86_400_000

export async function play(server: Pick<TestServer, 'url'>, setting: Setting): Promise<Outcome> {
  const pace = createPace()
  const clock = createVirtualClock(START, pace.settle)
  const stop = new AbortController()
  const budgets = createBudgets(clock, setting)
  const reads = new Map<PlayedList, number>()
  const begun = new Map<PlayedList, number>()
  const read = async (list: PlayedList) => {
    begun.set(list, clock.now())
    for (let page = 0; page < list.pages; page++) await budgets.request(list.token)
    reads.set(list, (reads.get(list) ?? 0) + 1)
  }
  const workers = await openWorkers(server, { ...setting, clock, pace, read, signal: stop.signal })
  try {
    await clock.settle()
    while (reads.size < setting.lists.length && clock.now() < TICK + LONGEST_MS) {
      clock.tick()
      await clock.settle()
    }
    const statements = pace.statements()
    const took = clock.now() - TICK
    const waits = Map.groupBy(setting.lists, ({ token }) => token)
    const waitOf = (list: PlayedList) => (begun.get(list) ?? clock.now()) - TICK
    return {
      setting,
      used: budgets.used(TICK),
      firstWaits: [...waits.values()].map((lists) => Math.min(...lists.map(waitOf))),
      longestWait: Math.max(...setting.lists.map(waitOf)),
      took,
      wrong: setting.lists.filter((list) => reads.get(list) !== 1).length,
      statements,
    }
  } finally {
    stop.abort()
    await workers.close(() => clock.tick())
  }
}

/** The tokens' budgets: a request leaves as soon as its token allows, in the order in which they came. */
interface Budgets {
  /** Resolves with the answer. */
  request(token: string): Promise<void>
  /** By token: the share of the requests that its budget allowed from then until its last one. */
  used(from: number): number[]
}

function createBudgets(
  clock: Pick<VirtualClock, 'now' | 'after'>,
  { perMinute, latencyMs }: Pick<Setting, 'perMinute' | 'latencyMs'>,
): Budgets {
  const spacing = 60_000 / perMinute
  const tokens = new Map<string, { next: number; sent: number }>()
  const pass = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve))
  return {
    request(token) {
      const known = tokens.get(token) ?? { next: 0, sent: 0 }
      tokens.set(token, known)
      const leavesAt = Math.max(clock.now(), known.next)
      known.next = leavesAt + spacing
      known.sent++
      return pass(leavesAt - clock.now() + latencyMs)
    },
    used: (from) => [...tokens.values()].map(({ next, sent }) => (sent * spacing) / (next - from)),
  }
}
