import type { JobResult } from '../sync/job.ts'
import type { Job } from '../sync/types.ts'
import { createLine, type Line, type LineOptions } from './line.ts'
import type { PingKind } from './send.ts'
import { type Outcome, outcomeOf, outcomeText, startText } from './summary.ts'

export interface PingsOptions extends Omit<LineOptions, 'send' | 'onLost' | 'onSent'> {
  /** The address that is told of an organization's jobs; null for none. */
  addressOf: (organizationId: string) => string | null
  send: (address: string, kind: PingKind, text: string, signal: AbortSignal) => Promise<void>
  onLost: (address: string, kind: PingKind, reason: string) => void
  onSent: (address: string, kind: PingKind) => void
  /** Epoch milliseconds. */
  now: () => number
}

/** Tells the configured addresses when jobs begin, and how they end. Nothing here delays or fails a run. */
export interface Pings {
  /** Runs these jobs. Jobs that begin in the same turn of the event loop are one run: that of a schedule, or a command's. */
  around(jobs: readonly Job[], run: () => Promise<JobResult[]>): Promise<JobResult[]>
  /** Resolves when no ping is left to send. */
  idle(): Promise<void>
}

/** Jobs that began together, of one address. */
interface Batch {
  target: Target
  running: number
  beganAt: number
  outcomes: Outcome[]
}

interface Target {
  line: Line
  /** The jobs whose last run failed: another schedule's success must not hide them. */
  failed: Map<string, Outcome>
}

export function createPings(options: PingsOptions): Pings {
  const { addressOf, send, onLost, onSent, now, signal, ...others } = options
  const targets = new Map<string, Target>()
  /** The batches that jobs of this turn of the event loop join, by address. */
  let opening = new Map<string, Batch>()

  function targetOf(address: string): Target {
    const known = targets.get(address)
    if (known) return known
    const line = createLine({
      ...others,
      signal,
      send: (kind, text, limit) => send(address, kind, text, limit),
      onLost: (kind, reason) => onLost(address, kind, reason),
      onSent: (kind) => onSent(address, kind),
    })
    const target = { line, failed: new Map<string, Outcome>() }
    targets.set(address, target)
    return target
  }

  function begin({ organization }: Job): Batch | null {
    const address = addressOf(organization.id)
    if (address === null) return null
    if (opening.size === 0) queueMicrotask(announce)
    const target = targetOf(address)
    const batch = opening.get(address) ?? { target, running: 0, beganAt: now(), outcomes: [] }
    opening.set(address, batch)
    batch.running++
    return batch
  }

  function announce(): void {
    for (const { target, running } of opening.values()) target.line.tell('start', startText(running))
    opening = new Map()
  }

  function end(batch: Batch, outcome: Outcome): void {
    const { target, outcomes } = batch
    outcomes.push(outcome)
    if (outcome.state === 'failed') target.failed.set(outcome.job, outcome)
    else if (outcome.state === 'succeeded') target.failed.delete(outcome.job)
    batch.running--
    // A run that was told to stop neither succeeded nor failed.
    if (batch.running > 0 || signal.aborted || outcomes.some(({ state }) => state === 'stopped')) return
    const failed = [...target.failed.values()]
    target.line.tell(
      failed.length > 0 ? 'fail' : 'success',
      outcomeText(outcomes, failed, now() - batch.beganAt),
    )
  }

  return {
    async around(jobs, run) {
      const batches = jobs.map(begin)
      const results = await run()
      results.forEach((result, index) => {
        const batch = batches[index]
        if (batch) end(batch, outcomeOf(result))
      })
      return results
    },
    idle: async () => {
      await Promise.all(Array.from(targets.values(), ({ line }) => line.idle()))
    },
  }
}
