import * as fc from 'fast-check'
import pLimit from 'p-limit'
import { expect, it } from 'vitest'
import { createSteppedClock, settle } from '../../helpers/clock.ts'
import { createBudgetStore, createScene, MINUTE, passing, SECOND } from '../helpers/rate.ts'

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

function createModel() {
  const clock = createSteppedClock()
  const store = createBudgetStore()
  const limiters = [0, 1].map(() => {
    const rules = { requestsPerMinute: CEILING, maxWait: MAX_WAIT }
    return createScene({ clock, store, slots: pLimit(SLOTS), rules }).limiter
  })
  const asked: Asked[] = []
  /** No request leaves before: the longest pause that a server asked for, with the second that is added to each. */
  let closedUntil = 0

  const waiting = () => asked.filter(({ leftAt, isOver }) => leftAt === null && !isOver)
  const inFlight = () => asked.filter(({ leftAt, isOver }) => leftAt !== null && !isOver)

  /** Notes which requests have left, and holds all promises against that. */
  function look(): void {
    const now = clock.now()
    for (const one of asked) {
      if (one.leftAt !== null || !one.request.sent) continue
      expect(now, 'a request left while the budget was closed').toBeGreaterThanOrEqual(closedUntil)
      expect(one.isOver, 'a request left that had been stopped').toBe(false)
      one.leftAt = now
    }
    const left = asked.flatMap(({ leftAt }) => leftAt ?? [])
    const inMinuteTo = (end: number) => left.filter((at) => at <= end && at > end - MINUTE).length
    expect(Math.max(0, ...left.map(inMinuteTo)), 'in a minute').toBeLessThanOrEqual(CEILING)
    for (const process of [0, 1]) {
      const busy = inFlight().filter((one) => one.process === process)
      expect(busy.length, 'on their way').toBeLessThanOrEqual(SLOTS)
      const ours = asked.filter((one) => one.process === process && (one.leftAt !== null || !one.isOver))
      const order = ours.map(({ leftAt }) => leftAt !== null)
      expect(order, 'a later one left first').toEqual(order.toSorted((one, other) => +other - +one))
    }
    for (const one of waiting()) {
      if (one.request.outcome === null) continue
      expect(one.request.outcome).toMatchObject({ name: 'JobError', code: 'RATE_LIMITED' })
      expect(closedUntil - now, 'a short pause was refused').toBeGreaterThan(MAX_WAIT)
      one.isOver = true
    }
  }

  return {
    waiting,
    inFlight,
    untilOpen: () => closedUntil - clock.now(),
    asks(process: number): void {
      const stop = new AbortController()
      const limiter = limiters[process] ?? expect.fail()
      const request = passing(limiter, { signal: stop.signal })
      asked.push({ process, request, stop, leftAt: null, isOver: false })
    },
    /** The oldest request on its way is answered. */
    async answers(answer: (request: Request) => void, pauseMs = 0): Promise<void> {
      const [one] = inFlight()
      if (!one) return
      one.isOver = true
      answer(one.request)
      // Those in flight together neither lengthen a pause nor shorten it, but for one that says more.
      if (pauseMs > 0) closedUntil = Math.max(closedUntil, clock.now() + pauseMs + SECOND)
    },
    async stops(): Promise<void> {
      const one = waiting().at(-1)
      if (!one) return
      one.isOver = true
      one.stop.abort(new Error('stopped'))
      await settle()
      expect(one.request.outcome).toEqual(new Error('stopped'))
    },
    /** `resume`, in another process. */
    forgets(): void {
      store.change('a', { closedUntil: 0 })
      closedUntil = 0
    },
    /** In steps that a promise could be broken in between. */
    async passes(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= SECOND) {
        await clock.pass(Math.min(left, SECOND))
        look()
      }
    },
    async settles(): Promise<void> {
      await settle()
      look()
    },
  }
}

type Model = ReturnType<typeof createModel>
type Deed = [name: string, run: (model: Model) => Promise<void> | void]

const deeds = fc.oneof(
  { weight: 2, arbitrary: fc.nat(1).map((who): Deed => [`${who} asks`, (model) => model.asks(who)]) },
  fc.integer({ min: 1, max: 70 }).map((s): Deed => [`${s} s pass`, (model) => model.passes(s * SECOND)]),
  fc.constantFrom<Deed>(
    ['an answer', (model) => model.answers((request) => request.succeed())],
    ['no answer', (model) => model.answers((request) => request.fail())],
    ['the last in line is stopped', (model) => model.stops()],
    ['the pause is forgotten', (model) => model.forgets()],
  ),
  fc.constantFrom(5, 30, 120, 3600).map((s): Deed => {
    const refuse = (request: Request) => request.throttle({ retryAfterMs: s * SECOND })
    return [`429, ${s} s`, (model) => model.answers(refuse, s * SECOND)]
  }),
)

it('a budget of two processes is never exceeded, closed while a server wants it so, and used when it is open', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deeds, { maxLength: 30, size: 'max' }), async (all) => {
      const model = createModel()
      for (const [, run] of all) {
        await run(model)
        await model.settles()
      }
      // Whatever happened: once all is answered and the pause is over, what waits leaves, so nothing was lost on the way.
      for (let turns = 0; model.waiting().length + model.inFlight().length > 0; turns++) {
        expect(turns, 'a request waits for ever').toBeLessThan(50)
        while (model.inFlight().length > 0) await model.answers((request) => request.succeed())
        await model.passes(Math.min(MAX_WAIT, Math.max(61 * SECOND, model.untilOpen())))
      }
    }),
    { numRuns: 60 },
  )
})
