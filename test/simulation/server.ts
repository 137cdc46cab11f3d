import {
  type Headers,
  knownOfJobs,
  listenWith,
  type Outcome,
  type Request,
  splitJob,
  type Tell,
} from './happening.ts'
import type { History } from './history.ts'
import { applyChange, type ListPage, pageAt, pageBody } from './list.ts'
import type { Random } from './random.ts'
import { BASE_URL, NO_LIMIT } from './setting.ts'

export interface ThrottleRules {
  /** One or two, each of so many requests in a window that begins with the first one that is counted; the headers show the one with the fewest left. */
  limits: readonly { most: number; windowSeconds: number }[]
  /** Some servers write none of the headers, not even on a 429. */
  headers: boolean
}

/** Laravel's throttle: it reckons in whole seconds, a refused request is not counted, and only the refusal's headers say when the window ends. */
function createThrottle({ limits, headers }: ThrottleRules) {
  const bucketsOf = knownOfJobs(() => limits.map((limit) => ({ ...limit, hits: 0, endsAtSecond: 0 })))

  /** Counts the request, or refuses it. */
  return (key: string, now: number): { admitted: boolean; headers: Headers } => {
    const second = Math.floor(now / 1000)
    const buckets = bucketsOf.of(key)
    for (const bucket of buckets) if (second >= bucket.endsAtSecond) bucket.hits = 0
    const full = buckets.find(({ hits, most }) => hits >= most)
    if (full) {
      const { endsAtSecond } = full
      const end = { 'retry-after': String(endsAtSecond - second), 'x-ratelimit-reset': String(endsAtSecond) }
      return { admitted: false, headers: headers ? { ...show(full), ...end } : {} }
    }
    for (const bucket of buckets) {
      if (bucket.hits === 0) bucket.endsAtSecond = second + bucket.windowSeconds
      bucket.hits++
    }
    const [tightest] = buckets.toSorted((a, b) => a.most - a.hits - (b.most - b.hits))
    return { admitted: true, headers: headers && tightest ? show(tightest) : {} }
  }
}

function show({ most, hits }: { most: number; hits: number }): Headers {
  return { 'x-ratelimit-limit': String(most), 'x-ratelimit-remaining': String(most - hits) }
}

/** What goes wrong with a request whatever it asks for. `respond` is what the application does with it, or fails with. */
type Fault = (respond: (failure?: Outcome) => Outcome, random: Random) => Outcome

const FAULTS: readonly Fault[] = [
  // Before the application sees it: the network, a proxy, maintenance. Nothing is counted.
  () => ({ kind: 'reset' }),
  () => answer(502, {}, '<html><title>nginx</title></html>'),
  () => answer(408, {}, '<html><title>nginx</title></html>'),
  () => refusal(503, {}, 'Service Unavailable'),
  (_, random) => refusal(503, { 'retry-after': `${random.whole(1, 120)}` }, 'Be right back.'),
  (_, random) => refusal(503, { 'retry-after': `${random.whole(901, 20_000)}` }, 'Maintenance'),
  (respond) => respond(refusal(500, {}, 'Server Error')),
  (respond) => respond(refusal(403, {}, 'No member.')),
  (respond) => respond(refusal(404, {}, 'Organization not found.')),
  // On the way back.
  (respond) => lost(respond(), 'reset'),
  (respond) => lost(respond(), 'silence'),
  (respond, random) => {
    const outcome = respond()
    if (outcome.kind !== 'answer' || !outcome.page) return outcome
    return { ...outcome, body: outcome.body.slice(0, random.whole(1, outcome.body.length - 1)), page: null }
  },
]

/** The simulated Administration API. */
export type Server = ReturnType<typeof createServer>

/** `events`: what somebody does to its lists and tokens just before the request of a number arrives there. */
export function createServer({ setting, lists, serverEvents: events }: History, random: Random, tell: Tell) {
  const revoked = new Set<string>()
  let throttle = createThrottle(setting.throttle)
  let coming = events.toSorted((a, b) => a.before - b.before)
  let weather = 0
  let received = 0

  const count = (token: string, now: number) => throttle(setting.oneUser ? 'one user' : token, now)

  function act(isDue: (before: number) => boolean): void {
    const due = coming.filter(({ before }) => isDue(before))
    coming = coming.filter(({ before }) => !isDue(before))
    for (const { deed } of due) tell(deed)
  }

  /** Authentication comes first, then the throttle, then everything else; failures inside are counted. */
  function respond({ token, job, page, filters }: Request, now: number, failure?: Outcome): Outcome {
    if (revoked.has(token)) return refusal(401, {}, 'Unauthenticated.')
    const { admitted, headers } = count(token, now)
    if (!admitted) return refusal(429, headers, 'Too Many Attempts.')
    const list = lists.get(job)
    if (!list) return refusal(404, headers, 'Organization not found.')
    if (failure?.kind === 'answer') return { ...failure, headers }
    const found = pageAt(list, page, filters)
    const [, collection] = splitJob(job)
    return answer(200, headers, pageBody(found, `${BASE_URL}/api/v1/admin/${collection}`, filters), found)
  }

  return {
    /** Answers a request that has arrived. */
    receive(request: Request, now: number): Outcome {
      received++
      act((before) => before <= received)
      if (random.chance(setting.strangers)) count(request.token, now)
      const fault: Fault = random.chance(weather) ? random.pick(FAULTS) : (works) => works()
      return fault((failure) => respond(request, now, failure), random)
    },
    hear: listenWith({
      weather({ faults }) {
        weather = faults
      },
      'token set': ({ token, isValid }) => (isValid ? revoked.delete(token) : revoked.add(token)),
      change({ job, change }) {
        const list = lists.get(job)
        if (list) tell({ kind: 'list changed', job, change, movement: applyChange(list, change) })
      },
    }),
    /** What was still to happen has happened; nothing fails or limits requests any more, and all tokens are valid. */
    relent(): void {
      act(() => true)
      weather = 0
      revoked.clear()
      throttle = createThrottle(NO_LIMIT)
    },
  }
}

function lost(_answer: Outcome, kind: 'reset' | 'silence'): Outcome {
  return { kind }
}

function answer(status: number, headers: Headers, body: string, page: ListPage | null = null): Outcome {
  return { kind: 'answer', status, headers, body, page }
}

function refusal(status: number, headers: Headers, message: string): Outcome {
  return answer(status, headers, JSON.stringify({ message }))
}
