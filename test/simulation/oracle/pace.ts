import {
  type HappeningOf,
  knownOfJobs,
  listenWith,
  type Outcome,
  type Request,
  splitJob,
} from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { iso, type OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'
import { mayBeOvertaken } from './owners.ts'

interface Closure {
  by: SimulatedProcess
  at: number
  until: number
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Promise 4: no request while its rate gate is closed, and no page of a job before the last one's answer. */
export function watchPace({ now, setting, tokenOf, wasLockedSince, complain }: OracleContext) {
  const { rateLimit, concurrency } = setting.config
  const closures = new Map<string, Closure>()
  /** By budget, when requests left. */
  const sentBy = knownOfJobs((): number[] => [])
  const inFlight = new Set<Request>()
  /** What a server that failed wants of the run that met it. */
  const notBefore = new Map<string, Closure>()

  function scopeOf({ job, token }: Request): string {
    const [organization] = splitJob(job)
    return { token, organization, all: 'all' }[rateLimit.scope]
  }

  /** A process may not know yet of what another one was told. */
  function mayBeUnknown({ at }: Closure): boolean {
    return at === now() || wasLockedSince(at)
  }

  function checkGate(request: Request): void {
    const closure = closures.get(scopeOf(request))
    if (!closure || closure.until <= now()) return
    if (closure.by !== request.process && mayBeUnknown(closure)) return
    complain(
      `request ${request.number} leaves while the server wants none before ${iso(closure.until)}`,
      request.job,
    )
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
    const { number, job, process } = request
    const others = [...inFlight].filter((other) => other.process.isAlive())
    // Who was overtaken hears of it when it has its answer.
    const twin = others.find(
      (other) =>
        other.job === job &&
        (other.process === process || !(mayBeOvertaken(other.process) || mayBeOvertaken(process))),
    )
    if (twin) complain(`request ${number} leaves before request ${twin.number} is answered`, job)
    const own = others.filter((other) => other.process === process)
    if (own.length >= concurrency)
      complain(`request ${number} makes ${own.length + 1} in flight, of ${concurrency}`, job)
    inFlight.add(request)
  }

  function onDelivered({ request, outcome }: HappeningOf<'delivered'>): void {
    inFlight.delete(request)
    const { process, job } = request
    const told = { by: process, at: now() }
    const wishMs = outcome.kind === 'answer' && outcome.status >= 500 ? retryAfter(outcome) : null
    if (wishMs !== null) notBefore.set(job, { ...told, until: now() + wishMs })
    const pauseMs = pauseOf(outcome, rateLimit)
    const scope = scopeOf(request)
    const until = now() + Math.min(pauseMs ?? 0, DAY_MS)
    if (pauseMs !== null && until > (closures.get(scope)?.until ?? 0)) closures.set(scope, { ...told, until })
  }

  // Whoever goes on after a refresh that failed asks once, as another run would.
  const onRun = ({ job }: HappeningOf<'run began' | 'refresh began' | 'refresh finished'>) =>
    notBefore.delete(job)

  return listenWith<Finding>({
    sent({ request }) {
      checkGate(request)
      checkRetry(request)
      checkCeiling(request)
      checkFlight(request)
    },
    delivered: onDelivered,
    'gave up': ({ request }) => inFlight.delete(request),
    'run began': onRun,
    'refresh began': onRun,
    'refresh finished': onRun,
    resumed({ organizations, process }) {
      const current = organizations.flatMap((id) => [id, tokenOf(process, id)])
      // Tokens that these organizations had before, of which an older process may have been the last user.
      const former = setting.tenants.filter(({ id }) => organizations.includes(id)).map(({ token }) => token)
      for (const scope of ['all', ...current, ...former]) closures.delete(scope)
      // Seed 424337: what a 503 asked for is forgotten with the pauses of its budget.
      for (const job of notBefore.keys()) if (organizations.includes(splitJob(job)[0])) notBefore.delete(job)
    },
    over({ process }) {
      for (const [scope, closure] of closures)
        if (closure.by === process && mayBeUnknown(closure)) closures.delete(scope)
    },
  })
}

/** What an answer says when to come back, in milliseconds. */
function retryAfter({ headers }: Outcome & { kind: 'answer' }): number | null {
  const seconds = headers['retry-after']
  return seconds === undefined ? null : Number(seconds) * 1000
}

/** How long an answer asks everybody to be silent, in milliseconds; null where it asks for nothing of that kind. */
export function pauseOf(outcome: Outcome, rules: { maxWait: number; fallbackWait: number }): number | null {
  if (outcome.kind !== 'answer') return null
  const told = retryAfter(outcome)
  if (outcome.status === 429) return told ?? rules.fallbackWait
  return outcome.status >= 500 && told !== null && told > rules.maxWait ? told : null
}
