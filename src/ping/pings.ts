import type { JobResult } from '../sync/job.ts'
import type { Job } from '../sync/types.ts'
import { createLine, type Line, type LineOptions, type PingKind } from './send.ts'
import { type Outcome, outcomeOf, outcomeText, standingOutcome, standingText, startText } from './summary.ts'

export interface PingsOptions extends Omit<LineOptions, 'send' | 'onLost' | 'onSent'> {
  /** The address for the pings about an organization's jobs; null for none. */
  addressOf: (organizationId: string) => string | null
  /** Names the token of an organization. */
  tokenOf: (organizationId: string) => string
  send: (address: string, kind: PingKind, text: string, signal: AbortSignal) => Promise<void>
  onLost: (address: string, kind: PingKind, reason: string) => void
  onSent: (address: string, kind: PingKind) => void
  /** Epoch milliseconds. */
  now: () => number
}

export type Pings = ReturnType<typeof createPings>

/** A list that was failing when an earlier process ended. */
export interface StandingTrouble {
  organizationId: string
  organization: string
  collection: string
  code: string
  /** It does not pass by itself. */
  waitsForSomebody: boolean
  /** A refresh that succeeds ends it. */
  endsByRefresh: boolean
}

/** Jobs that began together and have one address. */
interface Batch {
  target: Target
  running: number
  beganAt: number
  outcomes: Outcome[]
  /** Aborted when all have ended. */
  over: AbortController
  /** Whether a failure is about to be reported before the end, or was lately. */
  isToldEarly: boolean
}

/** How long after a failure a run that is still in progress reports it. A short run reports everything at its end. */
const EARLY_AFTER_MS = 10_000

/** How often it reports further ones. */
const EARLY_EVERY_MS = 50_000

interface Target {
  line: Line
  /** The jobs whose last run failed: another schedule's success must not hide them. */
  failed: Map<string, Outcome>
  /** The failed jobs that a refresh that succeeds clears: a refresh failed, or a held token kept the run from having a line in `sync_runs`. */
  byRefresh: Set<string>
  /** The refused tokens that the last ping reported. */
  toldTokens: Set<string | null>
  /** Whether the last ping about a failure did not arrive: then the next failure is reported even if it is known. */
  isUntold: boolean
}

/** Sends pings to the configured addresses when jobs begin and end. Nothing here delays or fails a run. */
export function createPings(options: PingsOptions) {
  const { addressOf, tokenOf, send, onLost, onSent, now, sleep, signal, ...others } = options
  const targets = new Map<string, Target>()
  /** The batches that jobs of this turn of the event loop join, by address. */
  let opening = new Map<string, Batch>()

  function targetOf(address: string): Target {
    const known = targets.get(address)
    if (known) return known
    const line = createLine({
      ...others,
      sleep,
      signal,
      send: (kind, text, limit) => send(address, kind, text, limit),
      onLost: (kind, reason) => {
        if (kind === 'fail') target.isUntold = true
        onLost(address, kind, reason)
      },
      onSent: (kind) => onSent(address, kind),
    })
    const target: Target = {
      line,
      failed: new Map(),
      byRefresh: new Set(),
      toldTokens: new Set(),
      isUntold: false,
    }
    targets.set(address, target)
    return target
  }

  function endOf(result: JobResult): Outcome {
    return outcomeOf(result, () => tokenOf(result.job.organization.id))
  }

  function join({ organization }: Job): Batch | null {
    const address = addressOf(organization.id)
    if (address === null) return null
    if (opening.size === 0) queueMicrotask(announce)
    const target = targetOf(address)
    const batch = opening.get(address) ?? newBatch(target, now())
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
    noteRun(target, outcome)
    batch.running--
    if (batch.running === 0) batch.over.abort()
    // A run that was told to stop neither succeeded nor failed.
    if (signal.aborted || outcomes.some(({ state }) => state === 'stopped')) return
    if (batch.running === 0) tellOutcome(target, outcomes, now() - batch.beganAt)
    else if (outcome.state === 'failed') void tellEarly(batch)
  }

  function noteRun({ failed, byRefresh }: Target, outcome: Outcome): void {
    const { job, state, hasLine, heldToken } = outcome
    const hidesWalk = failed.has(job) && !byRefresh.has(job)
    if (state === 'failed') failed.set(job, outcome)
    else if (state === 'succeeded') failed.delete(job)
    if (state === 'failed' && heldToken !== null && !hasLine && !hidesWalk) byRefresh.add(job)
    else byRefresh.delete(job)
  }

  function tellOutcome(target: Target, outcomes: readonly Outcome[], ms: number | null): void {
    tell(target, outcomeText(outcomes, [...target.failed.values()], ms))
  }

  function tell(target: Target, text: string): void {
    const { line, failed } = target
    target.isUntold = false
    target.toldTokens = new Set(Array.from(failed.values(), ({ heldToken }) => heldToken))
    line.tell(failed.size > 0 ? 'fail' : 'success', text)
  }

  /** Somebody has to act now, and other lists of the run may take hours. */
  async function tellEarly(batch: Batch): Promise<void> {
    const { target, outcomes, over } = batch
    if (batch.isToldEarly) return
    batch.isToldEarly = true
    let told = 0
    const failures = () => outcomes.filter(({ state }) => state === 'failed').length
    const stop = AbortSignal.any([signal, over.signal])
    while (!stop.aborted && failures() > told) {
      await sleep(EARLY_AFTER_MS, stop).catch(() => {})
      if (stop.aborted) return
      told = failures()
      tellOutcome(target, outcomes, now() - batch.beganAt)
      await sleep(EARLY_EVERY_MS, stop).catch(() => {})
    }
    batch.isToldEarly = false
  }

  function noteRefresh(result: JobResult): void {
    const address = addressOf(result.job.organization.id)
    const outcome = endOf(result)
    if (address === null || signal.aborted || outcome.state === 'stopped' || outcome.state === 'busy') return
    const target = targetOf(address)
    const { failed, byRefresh, toldTokens, isUntold } = target
    const before = failed.get(outcome.job)
    // A walk clears any failure. A refresh that was no longer due has read nothing, so it clears none.
    const mayClear = result.run !== null && (!result.isInstead || byRefresh.has(outcome.job))
    if (outcome.state === 'failed') {
      if (before?.reason === outcome.reason && !isUntold) return
      if (!before && result.trigger === 'refresh') byRefresh.add(outcome.job)
      failed.set(outcome.job, outcome)
      if (outcome.heldToken !== null && toldTokens.has(outcome.heldToken) && !isUntold) return
    } else {
      if (!before || !mayClear) return
      failed.delete(outcome.job)
      byRefresh.delete(outcome.job)
      // While other lists fail, no ping is sent for each that is well again.
      if (failed.size > 0) return
    }
    tellOutcome(target, [outcome], null)
  }

  /**
   * Call it before the first run of a service: so the success of another list does not hide what failed under an earlier process, and what needs
   * somebody to act is reported again at once.
   */
  function recall(troubles: readonly StandingTrouble[]): void {
    const waiting = new Set<Target>()
    for (const { organizationId, organization, collection, code, ...trouble } of troubles) {
      const address = addressOf(organizationId)
      if (address === null) continue
      const target = targetOf(address)
      const outcome = standingOutcome(organization, collection, code, () => tokenOf(organizationId))
      target.failed.set(outcome.job, outcome)
      if (trouble.endsByRefresh) target.byRefresh.add(outcome.job)
      if (trouble.waitsForSomebody) waiting.add(target)
    }
    for (const target of waiting) tell(target, standingText([...target.failed.values()]))
  }

  return {
    recall,
    /**
     * Reports that these jobs begin, and returns a function that reports how they ended, in the same order. Jobs that begin in the same turn
     * of the event loop are one run: that of a schedule, or a command's.
     */
    begin(jobs: readonly Job[]) {
      const batches = jobs.map(join)
      return (results: readonly JobResult[]): void =>
        results.forEach((result, index) => {
          const batch = batches[index]
          if (batch) end(batch, endOf(result))
        })
    },
    /**
     * For refreshes that are due, which are no runs of a schedule: reports when a list fails that was well, and when all lists are well again; a
     * refused token once, however many lists meet it. The same for a short list that is walked instead.
     */
    note: (results: readonly JobResult[]): void => results.forEach(noteRefresh),
    /** Resolves when no ping is left to send. */
    idle: async (): Promise<void> => {
      await Promise.all(Array.from(targets.values(), ({ line }) => line.idle()))
    },
  }
}

function newBatch(target: Target, beganAt: number): Batch {
  return { target, running: 0, beganAt, outcomes: [], over: new AbortController(), isToldEarly: false }
}
