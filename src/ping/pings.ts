import type { JobResult } from '../sync/job.ts'
import type { Job } from '../sync/types.ts'
import { createLine, type Line, type LineOptions, type PingKind } from './send.ts'
import {
  endOf,
  type Failing,
  listOf,
  outcomeText,
  reasonOfFailure,
  standingText,
  startText,
} from './summary.ts'

export interface PingsOptions extends Omit<LineOptions, 'send' | 'onLost' | 'onSent'> {
  /** The address for the pings about an organization's jobs; null for none. */
  addressOf: (organizationId: string) => string | null
  /** The lists that are not well, as the mirror has it now; empty if it cannot be read. */
  troubles: () => Promise<readonly Trouble[]>
  send: (address: string, kind: PingKind, text: string, signal: AbortSignal) => Promise<void>
  onLost: (address: string, kind: PingKind, reason: string) => void
  onSent: (address: string, kind: PingKind) => void
  /** Epoch milliseconds. */
  now: () => number
}

export type Pings = ReturnType<typeof createPings>

/** A list that is not well. */
export interface Trouble {
  organizationId: string
  /** Its name in pings. */
  list: string
  reason: string
  /** It does not pass by itself. */
  waitsForSomebody: boolean
}

/** How long after a failure a run that is still in progress reports it. A short run reports everything at its end. */
const EARLY_AFTER_MS = 10_000

/** How often it reports further ones. */
const EARLY_EVERY_MS = 50_000

interface Target {
  address: string
  line: Line
  /** What the last ping reported; with no reasons if it did not arrive, so that the next failure is reported again. */
  told: Failing
  /** Resolves when nothing is left to read from the mirror for this address: one outcome is read after another. */
  tail: Promise<void>
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

/**
 * Sends pings to the configured addresses when jobs begin and end. Whether the lists of an address are well is read from the mirror, as
 * `status` does; a run also reports what it met itself, of which the mirror may have no line. Nothing here delays or fails a run.
 */
export function createPings(options: PingsOptions) {
  const { addressOf, troubles, send, onLost, onSent, now, sleep, signal, ...others } = options
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
        if (kind === 'fail') target.told = new Map(Array.from(target.told.keys(), (list) => [list, '']))
        onLost(address, kind, reason)
      },
      onSent: (kind) => onSent(address, kind),
    })
    const target: Target = { address, line, told: new Map(), tail: Promise.resolve() }
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

  function end(batch: Batch, result: JobResult): void {
    const { results } = batch
    results.push(result)
    batch.running--
    if (batch.running === 0) batch.over.abort()
    // A run that was told to stop neither succeeded nor failed.
    if (signal.aborted || results.some((one) => endOf(one) === 'stopped')) return
    if (batch.running === 0) tellRun(batch)
    else if (endOf(result) === 'failed') void tellEarly(batch)
  }

  function tellRun({ target, results, beganAt }: Batch): void {
    const [ended, ms] = [[...results], now() - beganAt]
    inTurn(target, async () => tell(target, ended, await failingOf(target, ended), ms))
  }

  function inTurn(target: Target, task: () => Promise<void>): void {
    target.tail = target.tail.then(() => (signal.aborted ? undefined : task()))
  }

  async function failingOf({ address }: Target, results: readonly JobResult[]): Promise<Failing> {
    const ofAddress = (await troubles()).filter((one) => addressOf(one.organizationId) === address)
    const failed = results.filter((result) => endOf(result) === 'failed')
    return new Map([
      ...ofAddress.map(({ list, reason }) => [list, reason] as const),
      ...failed.map((result) => [listOf(result), reasonOfFailure(result)] as const),
    ])
  }

  function tell(target: Target, results: readonly JobResult[], failing: Failing, ms: number | null): void {
    target.told = failing
    target.line.tell(failing.size > 0 ? 'fail' : 'success', outcomeText(results, failing, ms))
  }

  /** Reports failures before the end of the run: somebody has to act now, and its other lists may take hours. */
  async function tellEarly(batch: Batch): Promise<void> {
    const { results, over } = batch
    if (batch.isToldEarly) return
    batch.isToldEarly = true
    let told = 0
    const failures = () => results.filter((result) => endOf(result) === 'failed').length
    const stop = AbortSignal.any([signal, over.signal])
    while (!stop.aborted && failures() > told) {
      await sleep(EARLY_AFTER_MS, stop).catch(() => {})
      if (stop.aborted) return
      told = failures()
      tellRun(batch)
      await sleep(EARLY_EVERY_MS, stop).catch(() => {})
    }
    batch.isToldEarly = false
  }

  function noteRefresh(result: JobResult): void {
    const address = addressOf(result.job.organization.id)
    if (address !== null) {
      const target = targetOf(address)
      inTurn(target, () => tellRefresh(target, result))
    }
  }

  async function tellRefresh(target: Target, result: JobResult): Promise<void> {
    const { told } = target
    const ended = endOf(result)
    const isNews = ended === 'failed' && told.get(listOf(result)) !== reasonOfFailure(result)
    // One that was no longer due has read nothing.
    const mayEnd = ended === 'succeeded' && result.run !== null && told.size > 0
    if (!isNews && !mayEnd) return
    const failing = await failingOf(target, [result])
    // While other lists fail, no ping is sent for each that is well again.
    if (isNews || failing.size === 0) tell(target, [result], failing, null)
    else target.told = new Map([...told].filter(([list]) => failing.has(list)))
  }

  /** Call it before the first run of a service: what needs somebody to act is reported again at once. */
  async function tellStanding(): Promise<void> {
    const all = await troubles()
    for (const [address, ofAddress] of Map.groupBy(all, (one) => addressOf(one.organizationId))) {
      if (address === null) continue
      const target = targetOf(address)
      target.told = new Map(ofAddress.map(({ list, reason }) => [list, reason]))
      if (ofAddress.some((one) => one.waitsForSomebody)) target.line.tell('fail', standingText(target.told))
    }
  }

  const ofAll = async (wait: (target: Target) => Promise<void>): Promise<void> => {
    await Promise.all(Array.from(targets.values(), wait))
  }

  return {
    tellStanding,
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
     * For refreshes that are due, which are no runs of a schedule: reports when a list fails that was well, and when all lists are well again.
     * The same for a short list that is walked instead.
     */
    note: (results: readonly JobResult[]): void => results.forEach(noteRefresh),
    /** Resolves when no ping needs the mirror any more. */
    read: () => ofAll(({ tail }) => tail),
    /** Resolves when no ping is left to send. */
    idle: () => ofAll(({ tail, line }) => tail.then(line.idle)),
  }
}
