import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../errors.ts'
import type { PageObserver } from '../sync/types.ts'
import { inWords } from '../text.ts'
import type { Announcement } from './rate-headers.ts'
import {
  afterAnswer,
  afterSend,
  afterThrottle,
  FRESH,
  nextSend,
  type RateRules,
  type RateState,
} from './rate-window.ts'

/** Where a budget's closing time is kept, so that a restart does not ask before it. */
export interface GateMemory {
  closedUntil(scope: string): number
  close(scope: string, untilMs: number): void
}

export interface RateGateOptions {
  scope: string
  rules: RateRules & { maxWaitMs: number }
  memory: GateMemory
  /** Requests in flight at the same time, shared by all gates. */
  slots: LimitFunction
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
}

/** One budget of requests. Everyone who shares it passes here before each request, in the order they came. */
export interface RateGate {
  /** Runs `send` when the budget allows it; what it learned must be told before it settles. */
  pass<T>(send: (answer: Answer) => Promise<T>, observer: PageObserver, signal: AbortSignal): Promise<T>
  /** Why nobody should even begin: the server wants a longer silence than we are willing to wait for. */
  refusal(): JobError | null
}

export interface Answer {
  accepted(told: Announcement): void
  throttled(told: Announcement): void
}

const AGAIN = Symbol('again')

export function createRateGate(options: RateGateOptions): RateGate {
  const { rules, memory, slots, now, sleep, random } = options
  const turns = pLimit(1)
  let state: RateState = { ...FRESH, closedUntil: memory.closedUntil(options.scope) }

  function refusal(): JobError | null {
    const { at, reason } = nextSend(state, rules, now())
    const wait = at - now()
    if (wait <= rules.maxWaitMs) return null
    return new JobError(
      'RATE_LIMITED',
      `${reason}, ${inWords(wait)} long, which is more than rateLimit.maxWait (${inWords(rules.maxWaitMs)}): ` +
        `nothing is sent before ${new Date(at).toISOString()}, and the next run after that goes on from here ` +
        `(admin-mirror resume forgets the wait)`,
    )
  }

  async function untilOpen(observer: PageObserver, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const refused = refusal()
      if (refused) throw refused
      const { at, reason } = nextSend(state, rules, now())
      const wait = at - now()
      if (wait <= 0) return
      observer.onWait(reason, at)
      await sleep(wait, signal)
    }
  }

  /** Others may have passed between the open gate and a free slot, so the budget is asked once more in the slot. */
  async function sendIfOpen<T>(
    send: (answer: Answer) => Promise<T>,
    onGo: () => void,
  ): Promise<T | typeof AGAIN> {
    if (nextSend(state, rules, now()).at > now()) return AGAIN
    state = afterSend(state, rules, now())
    onGo()
    let told = false
    try {
      return await send({
        accepted: (announcement) => {
          told = true
          state = afterAnswer(state, announcement, now())
        },
        throttled: (announcement) => {
          told = true
          state = afterThrottle(state, announcement, rules, now(), Math.floor(random() * 1000))
          memory.close(options.scope, state.closedUntil)
        },
      })
    } finally {
      if (!told) state = afterAnswer(state, null, now())
    }
  }

  async function pass<T>(
    send: (answer: Answer) => Promise<T>,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<T> {
    const arrived = now()
    for (;;) {
      await turns(() => untilOpen(observer, signal))
      const outcome = await slots(() => sendIfOpen(send, () => observer.onWaited(now() - arrived)))
      if (outcome !== AGAIN) return outcome
    }
  }

  return { pass, refusal }
}
