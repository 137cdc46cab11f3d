import pLimit, { type LimitFunction } from 'p-limit'
import { describe, expect, it } from 'vitest'
import type { RateRules } from '../../src/api/rate-budget.ts'
import { type Answer, createRateGate, type RateGate } from '../../src/api/rate-gate.ts'
import type { Announcement } from '../../src/api/rate-headers.ts'
import type { KeptBudget } from '../../src/api/rate-ledger.ts'
import { JobError } from '../../src/errors.ts'
import { createGateMemory, NOTHING_KEPT, type TestGateMemory } from './helpers/memory.ts'
import { createObserver } from './helpers/observer.ts'
import { createSteppedClock, type SteppedClock, settle } from './helpers/stepped-clock.ts'

const MINUTE = 60_000

/** After which a request of ours counts no more, where it left at the beginning of half a second. */
const OUR_MINUTE = MINUTE + 250
const NOTHING: Announcement = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

interface Setting {
  rules?: Partial<RateRules & { maxWaitMs: number }>
  memory?: TestGateMemory
  slots?: LimitFunction
  clock?: SteppedClock
  scope?: string
}

function createSetting({
  rules,
  memory = createGateMemory(),
  slots = pLimit(8),
  clock = createSteppedClock(),
  scope = 'a',
}: Setting = {}) {
  const defaults = {
    requestsPerMinute: null,
    sharePercent: 100,
    fallbackWaitMs: MINUTE,
    maxWaitMs: 15 * MINUTE,
  }
  const { now, sleep } = clock
  const gate = createRateGate({
    scope,
    by: 'this process',
    rules: { ...defaults, ...rules },
    memory,
    slots,
    now,
    sleep,
    random: () => 0.5,
  })
  return { gate, clock, memory, slots }
}

/** A memory that always reads the same. */
function keeping(kept: KeptBudget): TestGateMemory {
  const memory = createGateMemory()
  return { ...memory, read: () => kept }
}

/** A gate, and how often it has asked its memory. */
function createCounted() {
  const memory = createGateMemory()
  let reads = 0
  const read: TestGateMemory['read'] = (scope) => {
    reads++
    return memory.read(scope)
  }
  const { gate } = createSetting({ memory: { ...memory, read } })
  return { gate, reads: () => reads }
}

function notSentYet(): never {
  throw new Error('the request was not sent yet')
}

/** Someone at the gate: what was told, whether the request is on its way, and how the answer comes. */
function passing(gate: RateGate, signal = new AbortController().signal) {
  const { observer, told } = createObserver()
  let finish: (tell: (answer: Answer) => void) => void = notSentYet
  const one = {
    told,
    sent: false,
    outcome: null as unknown,
    answer: (remaining: number, limit: number, resetMs: number | null = null) =>
      finish((answer) => answer.accepted({ ...NOTHING, limit, remaining, resetMs })),
    succeed: () => finish((answer) => answer.accepted(NOTHING)),
    throttle: (announcement: Partial<Announcement> = {}) =>
      finish((answer) => {
        answer.throttled({ ...NOTHING, ...announcement })
        throw new Error('429')
      }),
    fail: () =>
      finish(() => {
        throw new Error('network')
      }),
  }
  const send = (answer: Answer) => {
    one.sent = true
    return new Promise<string>((resolve, reject) => {
      finish = (tell) => {
        try {
          tell(answer)
          resolve('the answer')
        } catch (error) {
          reject(error)
        }
      }
    })
  }
  gate.pass(send, observer, signal).then(
    (value) => {
      one.outcome = value
    },
    (error: unknown) => {
      one.outcome = error
    },
  )
  return one
}

/** One request and its answer: the first of a gate goes alone. */
async function hear(gate: RateGate): Promise<void> {
  const one = passing(gate)
  await settle()
  one.succeed()
  await settle()
}

/** A memory whose writes wait until the test says so, as behind another process's lock. */
function createLockedMemory() {
  const memory = createGateMemory()
  const lock = Promise.withResolvers<void>()
  let isLocked = false
  const change: TestGateMemory['change'] = async (scope, task) => {
    if (isLocked) await lock.promise
    return memory.change(scope, task)
  }
  const lockUp = () => {
    isLocked = true
  }
  return { memory: { ...memory, change }, lock: lockUp, unlock: lock.resolve }
}

function whoSent(all: { sent: boolean }[]): number[] {
  return all.flatMap(({ sent }, index) => (sent ? [index] : []))
}

describe('an open gate', () => {
  it('lets a request go at once and hands back its answer', async () => {
    const { gate } = createSetting()

    const one = passing(gate)
    await settle()
    one.succeed()
    await settle()

    expect(one).toMatchObject({ sent: true, outcome: 'the answer', told: [['waited', 0]] })
  })

  it('asks the memory three times for a request: when it comes, when it leaves, and when it is answered', async () => {
    const { gate, reads } = createCounted()
    await hear(gate)
    const before = reads()

    const one = passing(gate)
    await settle()
    expect(one.sent).toBe(true)
    expect(reads() - before).toBe(2)
    one.succeed()
    await settle()

    expect(reads() - before).toBe(3)
  })

  it('hands on what the request threw', async () => {
    const { gate } = createSetting()

    const one = passing(gate)
    await settle()
    one.fail()
    await settle()

    expect(one.outcome).toEqual(new Error('network'))
  })

  it('lets the first request go alone, and the others with its answer', async () => {
    const { gate, clock } = createSetting()

    const all = [passing(gate), passing(gate), passing(gate)]
    await clock.pass(5000)
    expect(whoSent(all)).toEqual([0])
    all[0]?.fail()
    await settle()

    expect(whoSent(all)).toEqual([0, 1, 2])
    // Nobody can say how long that takes.
    expect(all[1]?.told).toEqual([['waited', 5000]])
  })

  it('has no more requests on their way than there are slots', async () => {
    const { gate } = createSetting({ slots: pLimit(2) })
    await hear(gate)

    const all = [passing(gate), passing(gate), passing(gate), passing(gate)]
    await settle()
    expect(whoSent(all)).toEqual([0, 1])
    all[1]?.fail()
    await settle()

    expect(whoSent(all)).toEqual([0, 1, 2])
  })

  it('shares its slots with other gates, and is asked again once it has one', async () => {
    const slots = pLimit(1)
    const [{ gate, clock }, other] = [
      createSetting({ slots, rules: { requestsPerMinute: 1 } }),
      createSetting({ slots, scope: 'b' }),
    ]
    const first = passing(other.gate)
    await settle()
    const second = passing(gate)
    await settle()
    expect(second.sent).toBe(false)

    await clock.pass(5000)
    first.succeed()
    await settle()

    expect(second.sent).toBe(true)
    expect(second.told).toEqual([['waited', 5000]])
  })

  it('is closed to who gets a slot only after another process met a 429', async () => {
    const slots = pLimit(1)
    const { gate, clock, memory } = createSetting({ slots })
    const busy = passing(createSetting({ slots, scope: 'b' }).gate)
    await settle()
    const waiter = passing(gate)
    await settle()

    memory.close('a', clock.now() + 5000)
    busy.succeed()
    await clock.pass(4999)
    expect(waiter.sent).toBe(false)
    await clock.pass(1)

    expect(waiter.sent).toBe(true)
  })
})

describe('waiters', () => {
  it('go in the order they came', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    await hear(gate)
    const all = Array.from({ length: 5 }, () => passing(gate))
    const order: number[][] = []

    for (let minute = 0; minute < 5; minute++) {
      await clock.pass(OUR_MINUTE + 500)
      order.push(whoSent(all))
      all[minute]?.succeed()
    }

    expect(order).toEqual([[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]])
  })

  it('go in the order they came when slots are scarce, too', async () => {
    const { gate, clock, slots } = createSetting({ rules: { requestsPerMinute: 2 }, slots: pLimit(1) })
    const busy = Promise.withResolvers<void>()
    void slots(() => busy.promise)
    const all = Array.from({ length: 4 }, () => passing(gate))
    await clock.pass(1000)
    expect(whoSent(all)).toEqual([])

    busy.resolve()
    await settle()
    for (const one of all) {
      await clock.pass(2 * MINUTE)
      expect(one.sent).toBe(true)
      one.succeed()
    }
  })

  it('are told why and until when, each of them', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const open = clock.now() + OUR_MINUTE
    await hear(gate)

    const [second, third] = [passing(gate), passing(gate)]
    await clock.pass(1000)

    expect(second.told).toEqual([['wait', 'our own limit of 1 requests a minute', open]])
    expect(third.told).toEqual(second.told)
    await clock.pass(MINUTE)
    expect(second.told.slice(1)).toEqual([['waited', OUR_MINUTE]])
    second.succeed()
    await settle()
    // It left in the first half of a second.
    const next = open + OUR_MINUTE + 250
    expect(third.told.slice(1)).toEqual([['wait', 'our own limit of 1 requests a minute', next]])
  })

  it('are told of the limit of the server', async () => {
    const { gate, clock } = createSetting()
    const one = passing(gate)
    await settle()
    one.answer(0, 60)

    const other = passing(gate)
    await settle()

    expect(other.told).toEqual([
      ['wait', "the server's limit of 60 requests a minute", clock.now() + MINUTE + 250],
    ])
  })

  it('go as soon as an answer shows that the budget is there again', async () => {
    const { gate, clock } = createSetting()
    await hear(gate)
    const all = [passing(gate), passing(gate)]
    await settle()
    all[0]?.answer(1, 60)
    await settle()
    const waiter = passing(gate)
    await clock.pass(1000)
    expect(waiter.sent).toBe(false)

    all[1]?.fail()
    await settle()

    expect(waiter.sent).toBe(true)
    expect(waiter.told.at(-1)).toEqual(['waited', 1000])
  })
})

describe('a waiter that is stopped', () => {
  it.each(['the first in line', 'one behind it'])('goes at once: %s', async (place) => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const stop = new AbortController()
    await hear(gate)
    const ahead = place === 'one behind it' ? [passing(gate)] : []
    const stopped = passing(gate, stop.signal)
    await clock.pass(1000)

    stop.abort(new Error('stopped'))
    await settle()

    expect(stopped).toMatchObject({ sent: false, outcome: new Error('stopped') })
    expect(stopped.told.at(-1)).toEqual(['waited', 1000])
    expect(whoSent(ahead)).toEqual([])
  })

  it('goes at once while it waits for a slot, and is never sent', async () => {
    const { gate } = createSetting({ slots: pLimit(1) })
    const stop = new AbortController()
    await hear(gate)
    const busy = passing(gate)
    await settle()
    const stopped = passing(gate, stop.signal)
    await settle()

    stop.abort(new Error('stopped'))
    await settle()
    expect(stopped.outcome).toEqual(new Error('stopped'))
    busy.succeed()
    await settle()

    expect(stopped.sent).toBe(false)
  })

  it('goes at once when it was stopped before it came', async () => {
    const { gate } = createSetting()

    const stopped = passing(gate, AbortSignal.abort(new Error('stopped')))
    await settle()

    expect(stopped).toMatchObject({ sent: false, outcome: new Error('stopped') })
  })

  it('leaves its place to those behind it', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const stop = new AbortController()
    await hear(gate)
    const [first, second, last] = [passing(gate, stop.signal), passing(gate, stop.signal), passing(gate)]
    await settle()

    stop.abort(new Error('stopped'))
    await clock.pass(OUR_MINUTE)

    expect(whoSent([first, second, last])).toEqual([2])
  })
})

describe('a 429', () => {
  it('closes the gate for as long as the server said, a second and a jitter', async () => {
    const { gate, clock } = createSetting()
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()
    const end = clock.now() + 30_000 + 1000 + 500

    const other = passing(gate)
    await clock.pass(31_499)
    expect(other).toMatchObject({ sent: false, told: [['wait', 'the server asked for a pause', end]] })
    await clock.pass(1)

    expect(other.sent).toBe(true)
    expect(one.outcome).toEqual(new Error('429'))
  })

  it('closes the gate for those who wait already', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const one = passing(gate)
    await settle()
    const waiter = passing(gate)
    await clock.pass(MINUTE)
    one.throttle({ retryAfterMs: 120_000 })
    await clock.pass(120_000)
    expect(waiter.sent).toBe(false)

    await clock.pass(1500)

    expect(waiter.sent).toBe(true)
    expect(waiter.told.map(([, reason]) => reason)).toContain('the server asked for a pause')
  })

  it('that says nothing closes it for the fallback', async () => {
    const { gate, clock } = createSetting({ rules: { fallbackWaitMs: 20_000 } })
    const one = passing(gate)
    await settle()
    one.throttle()
    await settle()

    const other = passing(gate)
    await clock.pass(21_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('closes no gate of another budget', async () => {
    const memory = createGateMemory()
    const [{ gate }, other] = [createSetting({ memory, scope: 'a' }), createSetting({ memory, scope: 'b' })]
    const one = passing(gate)
    await settle()
    one.throttle()

    const another = passing(other.gate)
    await settle()

    expect(another.sent).toBe(true)
  })
})

describe('a pause', () => {
  it('is kept by the gate of the next run', async () => {
    const { gate, clock, memory } = createSetting()
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const { gate: next } = createSetting({ memory, clock })
    const other = passing(next)
    await clock.pass(31_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('holds for a gate that was open before another met it', async () => {
    const { gate, clock, memory } = createSetting()
    const { gate: other } = createSetting({ memory, clock })
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const another = passing(other)
    await settle()

    expect(another.sent).toBe(false)
  })

  it('is over once it was forgotten', async () => {
    const { gate, memory } = createSetting()
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 60 * MINUTE })
    await settle()
    expect(gate.refusal()).not.toBeNull()

    memory.close('a', 0)
    const other = passing(gate)
    await settle()

    expect(other.sent).toBe(true)
  })

  it('holds here while it cannot be written yet, and of two the longer one', async () => {
    const { memory, lock, unlock } = createLockedMemory()
    const { gate, clock } = createSetting({ memory })
    await hear(gate)
    const [short, long] = [passing(gate), passing(gate)]
    await settle()
    lock()

    long.throttle({ retryAfterMs: 40_000 })
    short.throttle({ retryAfterMs: 10_000 })
    const waiter = passing(gate)
    await clock.pass(41_499)
    expect(waiter.sent).toBe(false)
    expect(memory.read('a').closedUntil).toBe(0)
    const closedUntil = clock.now() + 1
    unlock()
    await clock.pass(1)

    expect(waiter.sent).toBe(true)
    expect(memory.read('a').closedUntil).toBe(closedUntil)
  })

  it('is refused when it is longer than maxWait, by however little', async () => {
    const { gate, clock, memory } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })

    memory.close('a', clock.now() + 5 * MINUTE)
    expect(gate.refusal()).toBeNull()
    memory.close('a', clock.now() + 5 * MINUTE + 1)

    expect(gate.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect(gate.refusal()?.message).toContain('(admin-mirror resume forgets the wait)')
  })

  it('that is longer than anybody waits is refused at once, with nothing sent', async () => {
    const { gate, clock } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 2 * 60 * MINUTE })
    await clock.pass(1000)
    const opens = new Date(clock.now() - 1000 + 2 * 60 * MINUTE + 1500).toISOString()

    const other = passing(gate)
    await settle()

    expect(other.sent).toBe(false)
    expect(other.told).toEqual([['waited', 0]])
    expect(other.outcome).toBeInstanceOf(JobError)
    expect(other.outcome).toMatchObject({ code: 'RATE_LIMITED' })
    expect(String(other.outcome)).toContain('the server asked for a pause, 2 hours long')
    expect(String(other.outcome)).toContain('more than rateLimit.maxWait (5 minutes)')
    expect(String(other.outcome)).toContain(`nothing is sent before ${opens}`)
    expect(gate.refusal()).toEqual(other.outcome)
  })

  it('is refused to those who wait already', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const one = passing(gate)
    await settle()
    const waiter = passing(gate)
    await clock.pass(1000)

    one.throttle({ retryAfterMs: 60 * MINUTE })
    await clock.pass(MINUTE)

    expect(waiter).toMatchObject({ sent: false, outcome: { code: 'RATE_LIMITED' } })
  })

  it('is no longer refused once the rest of it is short enough', async () => {
    const { gate, clock } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 60 * MINUTE })
    await clock.pass(56 * MINUTE)
    expect(gate.refusal()).toBeNull()

    const other = passing(gate)
    await clock.pass(4 * MINUTE + 1500)

    expect(other.sent).toBe(true)
  })

  it('of our own making is none that is refused', async () => {
    const { gate, clock } = createSetting({ rules: { requestsPerMinute: 1, maxWaitMs: 5000 } })
    await hear(gate)

    const other = passing(gate)
    await clock.pass(OUR_MINUTE)

    expect(gate.refusal()).toBeNull()
    expect(other.sent).toBe(true)
  })

  it('that was remembered for longer than a day is none', async () => {
    const { gate, clock, memory } = createSetting()
    memory.close('a', clock.now() + 24 * 60 * MINUTE + 1)

    const one = passing(gate)
    await settle()

    expect(gate.refusal()).toBeNull()
    expect(one).toMatchObject({ sent: true, told: [['waited', 0]] })
  })

  it('is kept to though the memory holds a later one that is none', async () => {
    const clock = createSteppedClock()
    const wrong = clock.now() + 25 * 60 * MINUTE
    const { gate } = createSetting({ clock, memory: keeping({ ...NOTHING_KEPT, closedUntil: wrong }) })
    const one = passing(gate)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const other = passing(gate)
    await clock.pass(31_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('that was remembered for a day is refused', async () => {
    const { gate, clock, memory } = createSetting()

    memory.close('a', clock.now() + 24 * 60 * MINUTE)

    expect(gate.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('until a reset beyond maxWait is refused, outlasts the run, and can be forgotten', async () => {
    const { gate, clock, memory } = createSetting()
    const one = passing(gate)
    await settle()

    one.answer(0, 60, 60 * MINUTE)
    await settle()

    expect(one.outcome).toBe('the answer')
    expect(gate.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect(createSetting({ memory, clock }).gate.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    memory.close('a', 0)
    expect(gate.refusal()).toBeNull()
  })

  it('until a reset within maxWait is waited out', async () => {
    const { gate, clock } = createSetting()
    const one = passing(gate)
    await settle()
    one.answer(0, 60, 5 * MINUTE)
    await settle()

    const other = passing(gate)
    await clock.pass(5 * MINUTE + 999)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })
})

/** The gate's clock, which can be set back while time goes on. */
function createSettable() {
  const clock = createSteppedClock()
  let behind = 0
  return {
    clock: { ...clock, now: () => clock.now() - behind },
    setBack: () => {
      behind = 24 * 60 * MINUTE
    },
  }
}

describe('a clock that goes back by a day', () => {
  it('holds a request back for one window of our own ceiling, and no longer', async () => {
    const { clock, setBack } = createSettable()
    const { gate } = createSetting({ rules: { requestsPerMinute: 1 }, clock })
    await hear(gate)
    setBack()

    const other = passing(gate)
    await clock.pass(OUR_MINUTE + 499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('holds a request back for one window of the server, and no longer', async () => {
    const { clock, setBack } = createSettable()
    const { gate } = createSetting({ clock })
    const one = passing(gate)
    await settle()
    one.answer(0, 60)
    await settle()
    setBack()

    const other = passing(gate)
    await clock.pass(MINUTE + 1000)

    expect(other.sent).toBe(true)
  })

  it('takes nothing away from the time that was waited', async () => {
    const { clock, setBack } = createSettable()
    const { gate } = createSetting({ clock, rules: { requestsPerMinute: 1 } })
    await hear(gate)
    const other = passing(gate)
    await clock.pass(1000)

    setBack()
    await clock.pass(3 * MINUTE)

    expect(other.sent).toBe(true)
    other.succeed()
    await settle()
    expect(other.told.at(-1)).toEqual(['waited', 0])
  })
})
