import { readRateHeaders } from '../../../src/api/rate-headers.ts'
import {
  afterAnswer,
  afterSend,
  afterThrottle,
  currentWindow,
  FRESH,
  nextSend,
  type RateRules,
  type RateState,
  type Window,
} from '../../../src/api/rate-window.ts'
import type { Answered } from './fixed-window.ts'

export interface Traffic {
  rules: RateRules
  /** Requests in flight at the same time; all of them want to send all the time. */
  senders: number
  /** Milliseconds. */
  duration: number
  /** Between 0 and 1, evenly. */
  random: () => number
  /** On the way to the server, and as long on the way back: from the first to below the second, in milliseconds. */
  latency: readonly [number, number]
  /** Asked in the order in which requests arrive there. */
  server: (now: number) => Answered
  /** Requests by others on the same budget, by the time they arrive. */
  others?: readonly number[]
}

export interface Log {
  /** When each request left. */
  sent: number[]
  /** When each request was served with 200, by the server's clock. */
  served: number[]
  throttled: number
}

const START = Date.UTC(2026, 10, 20, 8, 30, 0, 250)

/** Drives the decisions of rate-window through simulated time: an event a time, no clock and no promises. */
export function simulate({ rules, senders, duration, random, latency, server, others = [] }: Traffic): Log {
  const events = createEvents()
  const log: Log = { sent: [], served: [], throttled: 0 }
  const [least, most] = latency
  const onTheWay = () => least + random() * (most - least)
  let state: RateState = FRESH
  let idle = senders
  let wakeAt = Number.POSITIVE_INFINITY

  function sendWhatMayGo(now: number): void {
    if (now >= START + duration) return
    while (idle > 0) {
      const { at } = nextSend(state, rules, now)
      if (at > now) {
        if (at < Number.POSITIVE_INFINITY && (at < wakeAt || wakeAt <= now)) {
          wakeAt = at
          events.add(at, sendWhatMayGo)
        }
        return
      }
      idle--
      const leftIn = currentWindow(state, now)
      state = afterSend(state, rules, now)
      log.sent.push(now - START)
      events.add(now + onTheWay(), (then) => arrive(leftIn, then))
    }
  }

  function arrive(leftIn: Window | null, now: number): void {
    const answered = server(now)
    if (answered.status === 200) log.served.push(now - START)
    else log.throttled++
    events.add(now + onTheWay(), (then) => receive(leftIn, answered, then))
  }

  function receive(leftIn: Window | null, { status, headers }: Answered, now: number): void {
    const told = readRateHeaders(headers, now)
    const jitter = Math.floor(random() * 1000)
    state =
      status === 200 ? afterAnswer(state, leftIn, told, now) : afterThrottle(state, told, rules, now, jitter)
    idle++
    sendWhatMayGo(now)
  }

  for (const time of others) events.add(START + time, (now) => void server(now))
  events.add(START, sendWhatMayGo)
  events.run(START + duration)
  return log
}

/** What happens next, by time; what was added first goes first at the same time. */
function createEvents() {
  let queue: { at: number; happen: (now: number) => void }[] = []

  return {
    add(at: number, happen: (now: number) => void): void {
      const place = queue.findLastIndex((event) => event.at <= at) + 1
      queue.splice(place, 0, { at, happen })
    },
    run(until: number): void {
      for (let event = queue.shift(); event && event.at < until; event = queue.shift()) event.happen(event.at)
      queue = []
    },
  }
}

/** The most times that lie within one minute. */
export function mostInAMinute(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other)
  let first = 0
  return Math.max(
    0,
    ...sorted.map((time, index) => {
      while ((sorted[first] ?? time) <= time - 60_000) first++
      return index - first + 1
    }),
  )
}

/** Numbers between 0 and 1 that look random and are the same for each run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
