import * as fc from 'fast-check'
import pLimit from 'p-limit'
import { expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import { MINUTE, SECOND } from '../helpers/budgets.ts'
import { createSteppedClock, type SteppedClock, settle } from '../helpers/clock.ts'
import { createSetting, passing } from '../helpers/limiter-scene.ts'
import { createTestBudgetStore, type TestBudgetStore } from '../helpers/stores.ts'

// What is promised of one budget that two processes share, whatever they ask, are answered, and are told to stop.

const CEILING = 5
const SLOTS = 3
const MAX_WAIT = 15 * MINUTE

type Request = ReturnType<typeof passing>

/** A request as the test knows it. `leftAt`: epoch milliseconds; null while it waits. */
interface Asked {
  process: number
  request: Request
  stop: AbortController
  leftAt: number | null
  isOver: boolean
}

interface Model {
  /** No request leaves before: the longest pause that a server asked for, with what is added to each. */
  closedUntil: number
  asked: Asked[]
}

interface Real {
  clock: SteppedClock
  store: TestBudgetStore
  limiters: ReturnType<typeof createSetting>['limiter'][]
}

const waiting = ({ asked }: Model) => asked.filter(({ leftAt, isOver }) => leftAt === null && !isOver)
const inFlight = ({ asked }: Model) => asked.filter(({ leftAt, isOver }) => leftAt !== null && !isOver)

/** Notes which requests have left, and holds all promises against that. */
function look(model: Model, { clock }: Real): void {
  const now = clock.now()
  for (const one of model.asked) {
    if (one.leftAt !== null || !one.request.sent) continue
    expect(now, 'a request left while the budget was closed').toBeGreaterThanOrEqual(model.closedUntil)
    expect(one.isOver, 'a request left that had been stopped').toBe(false)
    one.leftAt = now
  }
  const left = model.asked.flatMap(({ leftAt }) => leftAt ?? [])
  for (const end of left) {
    const inMinute = left.filter((at) => at <= end && at > end - MINUTE)
    expect(inMinute.length, 'more than the ceiling left in a minute').toBeLessThanOrEqual(CEILING)
  }
  for (const process of [0, 1]) {
    const ours = model.asked.filter((one) => one.process === process)
    const busy = ours.filter(({ leftAt, isOver }) => leftAt !== null && !isOver)
    expect(busy.length, 'more were on their way than there are slots').toBeLessThanOrEqual(SLOTS)
    const places = ours.filter(({ isOver, leftAt }) => !isOver || leftAt !== null).map(({ leftAt }) => leftAt)
    const firstWaiting = places.indexOf(null)
    if (firstWaiting >= 0)
      expect(
        places.slice(firstWaiting).filter((at) => at !== null),
        'a later one left first',
      ).toEqual([])
  }
  for (const one of waiting(model)) {
    const refused = one.request.outcome
    if (refused === null) continue
    expect(refused).toBeInstanceOf(JobError)
    expect(refused).toMatchObject({ code: 'RATE_LIMITED' })
    expect(model.closedUntil - now, 'a short pause was refused').toBeGreaterThan(MAX_WAIT)
    one.isOver = true
  }
}

function deed(
  name: string,
  may: (model: Model) => boolean,
  run: (model: Model, real: Real) => Promise<void> | void,
): fc.AsyncCommand<Model, Real> {
  return {
    toString: () => name,
    check: may,
    async run(model, real) {
      await run(model, real)
      await settle()
      look(model, real)
    },
  }
}

async function pass(ms: number, model: Model, real: Real): Promise<void> {
  // Steps that a promise could be broken in between.
  for (let left = ms; left > 0; left -= SECOND) {
    await real.clock.pass(Math.min(left, SECOND))
    look(model, real)
  }
}

const passes = (seconds: number) =>
  deed(
    `${seconds} s pass`,
    () => true,
    (model, real) => pass(seconds * SECOND, model, real),
  )

const asks = (process: number) =>
  deed(
    `process ${process} asks`,
    () => true,
    (model, { limiters }) => {
      const limiter = limiters[process]
      if (!limiter) return
      const stop = new AbortController()
      const request = passing(limiter, { signal: stop.signal })
      model.asked.push({ process, request, stop, leftAt: null, isOver: false })
    },
  )

/** The oldest request on its way is answered. */
const answers = (how: string, answer: (request: Request) => void, pauseMs = 0) =>
  deed(
    how,
    (model) => inFlight(model).length > 0,
    async (model, real) => {
      const [one] = inFlight(model)
      if (!one) return
      one.isOver = true
      const isPaused = real.clock.now() < model.closedUntil
      answer(one.request)
      await settle()
      // Those in flight together neither lengthen a pause nor shorten it, but for one that says more.
      const until = real.clock.now() + pauseMs
      if (pauseMs > 0) model.closedUntil = isPaused ? Math.max(model.closedUntil, until) : until
    },
  )

const stops = () =>
  deed(
    'the last one in line is stopped',
    (model) => waiting(model).length > 0,
    async (model) => {
      const one = waiting(model).at(-1)
      if (!one) return
      one.isOver = true
      one.stop.abort(new Error('stopped'))
      await settle()
      expect(one.request.outcome).toEqual(new Error('stopped'))
    },
  )

/** `resume`, in another process. */
const forgets = () =>
  deed(
    'the pause is forgotten',
    (model) => model.closedUntil > 0,
    (model, { store }) => {
      store.change('a', { closedUntil: 0 })
      model.closedUntil = 0
    },
  )

function begin(): { model: Model; real: Real } {
  const clock = createSteppedClock()
  const store = createTestBudgetStore()
  const limiters = [0, 1].map(() => {
    const slots = pLimit(SLOTS)
    return createSetting({ clock, store, slots, rules: { requestsPerMinute: CEILING } }).limiter
  })
  return { model: { closedUntil: 0, asked: [] }, real: { clock, store, limiters } }
}

it('a budget of two processes is never exceeded, closed while a server wants it so, and used when it is open', async () => {
  const deeds = fc.commands(
    [
      fc.nat(1).map(asks),
      fc.nat(1).map(asks),
      fc.integer({ min: 1, max: 70 }).map(passes),
      fc.constant(answers('an answer', (request) => request.succeed())),
      fc.constant(answers('no answer', (request) => request.fail())),
      fc.constantFrom(5, 30, 120, 3600).map((seconds) => {
        const retryAfterMs = seconds * SECOND
        return answers(
          `429, ${seconds} s`,
          (request) => request.throttle({ retryAfterMs }),
          retryAfterMs + 1000,
        )
      }),
      fc.constant(stops()),
      fc.constant(forgets()),
    ],
    { maxCommands: 30, size: 'max' },
  )
  await fc.assert(
    fc.asyncProperty(deeds, async (all) => {
      const scene = begin()
      const { model, real } = scene
      await fc.asyncModelRun(() => scene, all)
      // Whatever happened: once all is answered and the pause is over, what waits leaves, so nothing was lost on the way.
      for (let turns = 0; waiting(model).length + inFlight(model).length > 0; turns++) {
        expect(turns, 'a request waits for ever').toBeLessThan(50)
        for (const one of inFlight(model)) {
          one.isOver = true
          one.request.succeed()
        }
        await pass(
          Math.min(MAX_WAIT, Math.max(61 * SECOND, model.closedUntil - real.clock.now())),
          model,
          real,
        )
      }
    }),
    { numRuns: 60 },
  )
})
