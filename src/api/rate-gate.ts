import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../errors.ts'
import type { PageObserver } from '../sync/types.ts'
import { inWords } from '../text.ts'
import type { Budget, RateRules } from './rate-budget.ts'
import { decide } from './rate-decision.ts'
import type { Announcement } from './rate-headers.ts'
import { createRateLedger, type GateMemory, type Left } from './rate-ledger.ts'
import { createTell, orAborted, type Tell } from './waiting.ts'

export interface RateGateOptions {
  scope: string
  /** Names the process among those that share the budget. */
  by: string
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
  /** Gives back to other processes what this one took and does not need, as nobody here is going to pass. */
  rest(): Promise<void>
}

export interface Answer {
  accepted(told: Announcement): void
  throttled(told: Announcement): void
}

interface Started<T> {
  result: Promise<T>
}

/** Another process may give something back, or somebody may type resume; and may have had an answer that is waited for. */
const LOOK_EVERY_MS = 1000
const LOOK_FOR_ANSWER_MS = 250

const doNothing = (): void => {}

export function createRateGate(options: RateGateOptions): RateGate {
  const { rules, slots, now, sleep, random } = options
  const ledger = createRateLedger(options)
  const turns = pLimit(1)
  /** Lets the first in line look again. */
  let look = doNothing

  function refusal({ closedUntil }: Pick<Budget, 'closedUntil'> = ledger.view()): JobError | null {
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
      const known = ledger.view()
      const refused = refusal(known)
      if (refused) throw refused
      const { at, reason } = await ledger.ask(known)
      if (at <= now()) return
      if (at < Number.POSITIVE_INFINITY) tell(reason, at)
      await untilLook(at, signal)
    }
  }

  /** Sleeps until then, or until there is a reason to look again. */
  async function untilLook(at: number, signal: AbortSignal): Promise<void> {
    const most = at === Number.POSITIVE_INFINITY ? LOOK_FOR_ANSWER_MS : LOOK_EVERY_MS
    const woken = new AbortController()
    look = () => woken.abort()
    try {
      await sleep(Math.min(at - now(), most), AbortSignal.any([signal, woken.signal]))
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
        const left = signal.aborted ? null : ledger.leave()
        if (left === null) return resolve(null)
        const result = sendCounted(send, left)
        resolve({ result })
        await result.catch(() => {})
      }
      slots(inSlot).catch(reject)
    })
  }

  async function sendCounted<T>(send: (answer: Answer) => Promise<T>, left: Left): Promise<T> {
    let isTold = false
    const tell = (how: () => void) => {
      isTold = true
      how()
      look()
    }
    try {
      return await send({
        accepted: (told) => tell(() => ledger.answered(left, told)),
        throttled: (told) => tell(() => ledger.throttled(told, Math.floor(random() * 1000))),
      })
    } finally {
      if (!isTold) tell(() => ledger.answered(left, null))
      await ledger.tellOthers()
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

  /** What the others in line wait for, the first in line waits for as well, and tells it himself. */
  function tellInLine(tell: Tell, arrived: number): void {
    const known = ledger.view()
    const { at, reason } = decide(known, rules, arrived)
    if (at > arrived && at < Number.POSITIVE_INFINITY && !refusal(known)) tell(reason, at)
  }

  async function pass<T>(
    send: (answer: Answer) => Promise<T>,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<T> {
    const arrived = now()
    const tell = createTell(observer)
    if (turns.activeCount > 0) tellInLine(tell, arrived)
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

  return { pass, refusal: () => refusal(), rest: ledger.giveBack }
}
