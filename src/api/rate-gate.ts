import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../errors.ts'
import type { PageObserver } from '../sync/types.ts'
import { inWords } from '../text.ts'
import { type Announcement, LONGEST_MS } from './rate-headers.ts'
import {
  afterAnswer,
  afterSend,
  afterThrottle,
  asOfNow,
  currentWindow,
  FRESH,
  nextSend,
  type RateRules,
  type RateState,
} from './rate-window.ts'
import { createTell, orAborted, type Tell } from './waiting.ts'

/** Where a budget's closing time is kept, so that a restart does not ask before it. */
export interface GateMemory {
  closedUntil(scope: string): number
  close(scope: string, untilMs: number): Promise<void>
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

interface Started<T> {
  result: Promise<T>
}

const doNothing = (): void => {}

export function createRateGate(options: RateGateOptions): RateGate {
  const { scope, rules, memory, slots, now, sleep, random } = options
  const turns = pLimit(1)
  let own: RateState = FRESH
  /** A pause that is not written yet. */
  let unwritten = 0
  /** Lets the first in line look again, when it sleeps longer than it must. */
  let look = doNothing

  /** The pause is the memory's to say: another process may have met a 429, and `resume` may have forgotten one. */
  function state(): RateState {
    const kept = memory.closedUntil(scope)
    // The memory keeps the latest time it was told, so behind one that cannot be true stands none of ours.
    const closedUntil = Math.max(unwritten, kept - now() > LONGEST_MS ? own.closedUntil : kept)
    own = asOfNow({ ...own, closedUntil }, now())
    return own
  }

  function remember(next: RateState): void {
    if (next.closedUntil > state().closedUntil) unwritten = next.closedUntil
    learn(next)
  }

  async function writePause(): Promise<void> {
    const until = unwritten
    if (until === 0) return
    await memory.close(scope, until)
    if (unwritten === until) unwritten = 0
  }

  function learn(next: RateState): void {
    own = next
    look()
  }

  function refusal(): JobError | null {
    const { closedUntil } = state()
    const wait = closedUntil - now()
    if (wait <= rules.maxWaitMs) return null
    return new JobError(
      'RATE_LIMITED',
      `the server asked for a pause, ${inWords(wait)} long, which is more than rateLimit.maxWait ` +
        `(${inWords(rules.maxWaitMs)}): nothing is sent before ${new Date(closedUntil).toISOString()}, and the next run ` +
        `after that goes on from here (admin-mirror resume forgets the wait)`,
    )
  }

  async function untilOpen(tell: Tell, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const refused = refusal()
      if (refused) throw refused
      const { at, reason } = nextSend(state(), rules, now())
      if (at <= now()) return
      if (at === Number.POSITIVE_INFINITY) await untilAnswer(signal)
      else {
        tell(reason, at)
        await sleepUntil(at, signal)
      }
    }
  }

  async function untilAnswer(signal: AbortSignal): Promise<void> {
    const answer = new Promise<void>((resolve) => {
      look = resolve
    })
    await orAborted(answer, signal).finally(() => {
      look = doNothing
    })
  }

  async function sleepUntil(at: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    look = () => {
      if (nextSend(state(), rules, now()).at < at) woken.abort()
    }
    try {
      await sleep(at - now(), AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted) throw error
    } finally {
      look = doNothing
    }
  }

  /** Other budgets may hold all slots for a while, so this one is asked once more in the slot; null if it has closed. */
  function startInSlot<T>(
    send: (answer: Answer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<Started<T> | null> {
    return new Promise((resolve, reject) => {
      const inSlot = async () => {
        if (signal.aborted || nextSend(state(), rules, now()).at > now()) return resolve(null)
        const result = sendCounted(send)
        resolve({ result })
        await result.catch(() => {})
      }
      slots(inSlot).catch(reject)
    })
  }

  async function sendCounted<T>(send: (answer: Answer) => Promise<T>): Promise<T> {
    const leftIn = currentWindow(state(), now())
    learn(afterSend(state(), rules, now()))
    let told = false
    try {
      return await send({
        accepted: (announcement) => {
          told = true
          remember(afterAnswer(state(), leftIn, announcement, now()))
        },
        throttled: (announcement) => {
          told = true
          remember(afterThrottle(state(), announcement, rules, now(), Math.floor(random() * 1000)))
        },
      })
    } finally {
      if (!told) learn(afterAnswer(state(), leftIn, null, now()))
      await writePause()
    }
  }

  /** The next in line has its turn as soon as this one is on its way, so that all leave in the order they came. */
  async function inTurn<T>(
    send: (answer: Answer) => Promise<T>,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<Started<T>> {
    for (;;) {
      await untilOpen(tell, signal)
      const started = await startInSlot(send, signal)
      if (started) return started
    }
  }

  async function pass<T>(
    send: (answer: Answer) => Promise<T>,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<T> {
    const arrived = now()
    const tell = createTell(observer)
    const { at, reason } = nextSend(state(), rules, arrived)
    if (at > arrived && at < Number.POSITIVE_INFINITY && !refusal()) tell(reason, at)
    try {
      const started = await orAborted(
        turns(() => inTurn(send, tell, signal)),
        signal,
      )
      return started.result
    } finally {
      // The clock may have gone back meanwhile.
      observer.onWaited(Math.max(0, now() - arrived))
    }
  }

  return { pass, refusal }
}
