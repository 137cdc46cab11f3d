import type { JobResult } from '../sync/job.ts'
import type { Job } from '../sync/types.ts'
import { createLine, type Line, type LineOptions, type PingKind } from './send.ts'
import {
  endOf,
  listName,
  listOf,
  outcomeText,
  reasonOf,
  reasonOfFailure,
  standingText,
  startText,
} from './summary.ts'

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

/** How long after a failure a run that is still in progress reports it. A short run reports everything at its end. */
const EARLY_AFTER_MS = 10_000

/** How often it reports further ones. */
const EARLY_EVERY_MS = 50_000

/** A list whose last run failed. */
interface Failure {
  reason: string
  /** Names the refused token, which fails runs and refreshes alike; null for any other failure. */
  heldToken: string | null
  /** Whether a refresh that succeeds ends it: a refresh failed, or a held token kept the run from having a line in `sync_runs`. */
  endsByRefresh: boolean
}

interface Target {
  line: Line
  /** By the name of the list: another schedule's success must not hide them. */
  failed: Map<string, Failure>
  /** The refused tokens that the last ping reported. */
  toldTokens: Set<string | null>
  /** Whether the last ping about a failure did not arrive: then the next failure is reported even if it is known. */
  isUntold: boolean
}

/** Jobs that began together and have one address. */
interface Batch {
  target: Target
  running: number
  beganAt: number
  /** Of those that have ended. */
  results: JobResult[]
  /** Aborted when all have ended. */
  over: AbortController
  /** Whether a failure is about to be reported before the end, or was lately. */
  isToldEarly: boolean
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
    const target: Target = { line, failed: new Map(), toldTokens: new Set(), isUntold: false }
    targets.set(address, target)
    return target
  }

  function join({ organization }: Job): Batch | null {
    const address = addressOf(organization.id)
    if (address === null) return null
    if (opening.size === 0) queueMicrotask(announce)
    const batch = opening.get(address) ?? {
      target: targetOf(address),
      running: 0,
      beganAt: now(),
      results: [],
      over: new AbortController(),
      isToldEarly: false,
    }
    opening.set(address, batch)
    batch.running++
    return batch
  }

  function announce(): void {
    for (const { target, running } of opening.values()) target.line.tell('start', startText(running))
    opening = new Map()
  }

  function heldTokenOf(organizationId: string, code: string | undefined): string | null {
    return code === 'UNAUTHORIZED' ? tokenOf(organizationId) : null
  }

  function failureOf(result: JobResult, endsByRefresh: boolean): Failure {
    const heldToken = heldTokenOf(result.job.organization.id, result.error?.code)
    return { reason: reasonOfFailure(result), heldToken, endsByRefresh }
  }

  function end(batch: Batch, result: JobResult): void {
    const { target, results } = batch
    results.push(result)
    noteRun(target.failed, result)
    batch.running--
    if (batch.running === 0) batch.over.abort()
    // A run that was told to stop neither succeeded nor failed.
    if (signal.aborted || results.some((one) => endOf(one) === 'stopped')) return
    if (batch.running === 0) tellResults(target, results, now() - batch.beganAt)
    else if (endOf(result) === 'failed') void tellEarly(batch)
  }

  function noteRun(failed: Target['failed'], result: JobResult): void {
    const list = listOf(result)
    if (endOf(result) === 'succeeded') failed.delete(list)
    if (endOf(result) !== 'failed') return
    const hidesWalk = failed.get(list)?.endsByRefresh === false
    const hasNoLine = result.error?.code === 'UNAUTHORIZED' && result.run === null
    failed.set(list, failureOf(result, hasNoLine && !hidesWalk))
  }

  function tellResults(target: Target, results: readonly JobResult[], ms: number | null): void {
    tell(target, outcomeText(results, target.failed, ms))
  }

  function tell(target: Target, text: string): void {
    const { line, failed } = target
    target.isUntold = false
    target.toldTokens = new Set(Array.from(failed.values(), ({ heldToken }) => heldToken))
    line.tell(failed.size > 0 ? 'fail' : 'success', text)
  }

  /** Reports failures before the end of the run: somebody has to act now, and its other lists may take hours. */
  async function tellEarly(batch: Batch): Promise<void> {
    const { target, results, over } = batch
    if (batch.isToldEarly) return
    batch.isToldEarly = true
    let told = 0
    const failures = () => results.filter((result) => endOf(result) === 'failed').length
    const stop = AbortSignal.any([signal, over.signal])
    while (!stop.aborted && failures() > told) {
      await sleep(EARLY_AFTER_MS, stop).catch(() => {})
      if (stop.aborted) return
      told = failures()
      tellResults(target, results, now() - batch.beganAt)
      await sleep(EARLY_EVERY_MS, stop).catch(() => {})
    }
    batch.isToldEarly = false
  }

  function noteRefresh(result: JobResult): void {
    const address = addressOf(result.job.organization.id)
    const ended = endOf(result)
    if (address === null || signal.aborted || ended === 'stopped' || ended === 'busy') return
    const target = targetOf(address)
    const { failed, toldTokens, isUntold } = target
    const list = listOf(result)
    const before = failed.get(list)
    if (ended === 'failed') {
      const failure = failureOf(result, before?.endsByRefresh ?? result.trigger === 'refresh')
      if (before?.reason === failure.reason && !isUntold) return
      failed.set(list, failure)
      if (failure.heldToken !== null && toldTokens.has(failure.heldToken) && !isUntold) return
    } else {
      // A walk ends any failure. A refresh that was no longer due has read nothing, so it ends none.
      const mayEnd = result.run !== null && (!result.isInstead || before?.endsByRefresh === true)
      if (!before || !mayEnd) return
      failed.delete(list)
      // While other lists fail, no ping is sent for each that is well again.
      if (failed.size > 0) return
    }
    tellResults(target, [result], null)
  }

  /**
   * Call it before the first run of a service: so the success of another list does not hide what failed under an earlier process, and what needs
   * somebody to act is reported again at once.
   */
  function recall(troubles: readonly StandingTrouble[]): void {
    const waiting = new Set<Target>()
    for (const { organizationId: id, organization, collection, code, ...trouble } of troubles) {
      const address = addressOf(id)
      if (address === null) continue
      const target = targetOf(address)
      const { endsByRefresh } = trouble
      const failure = { reason: reasonOf(code), heldToken: heldTokenOf(id, code), endsByRefresh }
      target.failed.set(listName(organization, collection), failure)
      if (trouble.waitsForSomebody) waiting.add(target)
    }
    for (const target of waiting) tell(target, standingText(target.failed))
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
          if (batch) end(batch, result)
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
