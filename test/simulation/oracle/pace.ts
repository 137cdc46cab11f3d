import { listenWith, type Tell } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName, type Outcome, type Request } from '../traffic.ts'
import { createStock, type OracleContext } from './context.ts'

interface Closure {
  by: SimulatedProcess
  at: number
  until: number
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Promise 4: no request while its rate gate is closed, and no page of a job before the last one's answer. */
export function watchPace(context: OracleContext): Tell {
  const { now, setting, tokenOf, wasLockedSince, complain } = context
  const { rateLimit, concurrency } = setting.config
  const closures = new Map<string, Closure>()
  const sentBy = createStock((_scope: string): number[] => [])
  const inFlight = new Set<Request>()
  /** What a server that failed wants of the run that met it. */
  const notBefore = new Map<string, Closure>()

  function scopeOf({ organization, token }: Pick<Request, 'organization' | 'token'>): string {
    return { token, organization, all: 'all' }[rateLimit.scope]
  }

  function checkGate(request: Request): void {
    const closure = closures.get(scopeOf(request))
    if (!closure || closure.until <= now()) return
    const isOwn = closure.by === request.process
    const couldNotKnow = closure.at === now() || wasLockedSince(closure.at)
    if (!isOwn && couldNotKnow) return
    const until = new Date(closure.until).toISOString()
    complain(`request ${request.number} leaves while the server wants none before ${until}`, request.job)
  }

  function checkRetry({ process, job, number }: Request): void {
    const wish = notBefore.get(job)
    if (wish?.by === process && now() < wish.until)
      complain(`request ${number} leaves sooner than the server that failed has said`, job)
  }

  function checkCeiling(request: Request): void {
    const most = rateLimit.requestsPerMinute
    if (most === null) return
    const sent = sentBy.of(scopeOf(request))
    const earlier = sent.at(-most)
    if (earlier !== undefined && now() - earlier <= MINUTE_MS)
      complain(`request ${request.number} is one of more than ${most} in 60 seconds`, request.job)
    sent.push(now())
  }

  function checkFlight(request: Request): void {
    const others = [...inFlight].filter(({ process }) => process.isAlive())
    // Who was cut off from the mirror may have been overtaken, and hears of it when it has its answer.
    const mayBeOvertaken = ({ process }: Request) =>
      process !== request.process && (process.wasCut() || request.process.wasCut())
    const twin = others.find((other) => other.job === request.job && !mayBeOvertaken(other))
    if (twin)
      complain(`request ${request.number} leaves before request ${twin.number} is answered`, request.job)
    const own = others.filter(({ process }) => process === request.process)
    if (own.length >= concurrency)
      complain(`request ${request.number} makes ${own.length + 1} in flight, of ${concurrency}`, request.job)
    inFlight.add(request)
  }

  function close(request: Request, pauseMs: number): void {
    const scope = scopeOf(request)
    const until = now() + Math.min(pauseMs, DAY_MS)
    if (until > (closures.get(scope)?.until ?? 0))
      closures.set(scope, { by: request.process, at: now(), until })
  }

  function onResumed(organizations: readonly string[], process: SimulatedProcess): void {
    const scopes = organizations.flatMap((id) => [id, tokenOf(process, id)])
    for (const scope of ['all', ...scopes]) closures.delete(scope)
    // Tokens that these organizations had before, of which an older process may have been the last user.
    for (const { token, id } of setting.tenants) if (organizations.includes(id)) closures.delete(token)
  }

  function onKilled(process: SimulatedProcess): void {
    for (const [scope, { by, at }] of closures)
      if (by === process && (at === now() || wasLockedSince(at))) closures.delete(scope)
  }

  function onDelivered(request: Request, outcome: Outcome): void {
    inFlight.delete(request)
    const { process, job } = request
    const wishMs = wishOf(outcome)
    if (wishMs !== null) notBefore.set(job, { by: process, at: now(), until: now() + wishMs })
    const pauseMs = pauseOf(outcome, rateLimit)
    if (pauseMs !== null) close(request, pauseMs)
  }

  return listenWith({
    sent({ request }) {
      checkGate(request)
      checkRetry(request)
      checkCeiling(request)
      checkFlight(request)
    },
    delivered: ({ request, outcome }) => onDelivered(request, outcome),
    'gave up'({ request }) {
      inFlight.delete(request)
    },
    'run began'({ job: { organization, collection } }) {
      notBefore.delete(jobName(organization.id, collection.name))
    },
    // Whoever goes on after a refresh that failed asks once, as another run would.
    'refresh finished'({ job: { organization, collection } }) {
      notBefore.delete(jobName(organization.id, collection.name))
    },
    'refresh began'({ job: { organization, collection } }) {
      notBefore.delete(jobName(organization.id, collection.name))
    },
    resumed: ({ organizations, process }) => onResumed(organizations, process),
    killed: ({ process }) => onKilled(process),
    ended: ({ process }) => onKilled(process),
  })
}

/** How long a server that failed wants to be left alone, in milliseconds. */
function wishOf(outcome: Outcome): number | null {
  if (outcome.kind !== 'answer' || outcome.status < 500) return null
  const seconds = outcome.headers['retry-after']
  return seconds === undefined ? null : Number(seconds) * 1000
}

/** How long an answer asks everybody to be silent, in milliseconds; null where it asks for nothing of that kind. */
export function pauseOf(outcome: Outcome, rules: { maxWait: number; fallbackWait: number }): number | null {
  if (outcome.kind !== 'answer') return null
  const { status, headers } = outcome
  const told = headers['retry-after'] === undefined ? null : Number(headers['retry-after']) * 1000
  if (status === 429) return told ?? rules.fallbackWait
  return status >= 500 && told !== null && told > rules.maxWait ? told : null
}
