import fs from 'node:fs'
import path from 'node:path'
import { type Happening, listenWith } from '../happening.ts'
import type { ListFilters, SimulatedList } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import type { OracleContext } from './context.ts'
import { watchFreshness } from './freshness.ts'
import { watchHolds } from './holds.ts'
import { watchLedger } from './ledger.ts'
import { watchMovements } from './movements.ts'
import { watchOwners } from './owners.ts'
import { watchPace } from './pace.ts'
import { watchRemovals } from './removals.ts'
import { watchRuns } from './runs.ts'
import { type Gone, watchTimes, watchVersions } from './versions.ts'
import { watchStillWalks } from './walks.ts'

/** Knows the promises, and complains when one is broken. Written apart from the program: it shares no code with it. */
export interface Oracle {
  tell(happening: Happening): void
  /** When all processes are gone, the server has come to rest, and a last sync has had its turn. */
  atRest(folder: string, tokens: readonly string[], filters: ListFilters): void
  /** How some list and its mirror differ; null where all are equal. */
  difference(filters: ListFilters): string | null
}

export function createOracle(context: OracleContext, lists: ReadonlyMap<string, SimulatedList>): Oracle {
  const { mirror, complain } = context
  const jobs = [...lists.keys()]
  const versions = watchVersions(context)
  const runs = watchRuns(context)
  const removals = watchRemovals(context)
  const movements = watchMovements(context, lists)
  const walks = watchStillWalks(context, movements)
  const times = watchTimes(context)
  const freshness = watchFreshness(context, lists, versions.timesOf)
  const owners = watchOwners(context)
  const ledger = watchLedger(context, {
    onSaved(inHand, walk) {
      owners.onSaved(inHand.request.process, inHand.request.job)
      const at = times.ofWalk(inHand, walk)
      movements.onSaved(inHand, walk)
      walks.onSaved(inHand, walk, at)
      runs.onSaved(inHand, versions.onSaved(inHand, at))
      removals.onSaved(inHand, walk)
    },
    onRefreshed(inHand) {
      owners.onSaved(inHand.request.process, inHand.request.job)
      const at = times.ofRefresh(inHand)
      runs.onSaved(inHand, versions.onSaved(inHand, at))
      removals.onRefreshed(inHand)
      freshness.onRefreshed(inHand, at)
    },
    onWalk(job, walk, before) {
      if (freshness.isUnderWay(job)) complain(`walk ${walk.id} changes while the list is refreshed`, job)
      movements.onWalk(job, walk, before)
      walks.onWalk(job, walk, before)
      if (before === null) removals.onBegun(job, walk.id)
      if (walk.status === 'complete') {
        const gone = takeGone(job)
        removals.onWalk(job, walk, before, versions.liveIds(job), gone)
        freshness.onWalk(job, walk, before)
      }
    },
  })

  /** Rows are only ever removed while a run of their job is under way. */
  function takeGone(job: string): Gone[] {
    const gone = versions.takeGone(job)
    if (gone.length > 0 && freshness.isUnderWay(job)) complain('a refresh removes items', job)
    runs.onGone(job, gone.length)
    return gone
  }

  function reap(job: string): void {
    const gone = takeGone(job)
    if (gone.length > 0) removals.takeGone(job, gone)
  }

  /** What is left of an overtaken process: its last answer, and the end of a run that its successor has ended already. */
  function isOfOvertaken(happening: Happening): boolean {
    const process = 'request' in happening ? happening.request.process : actorOf(happening)
    const job = jobOf(happening)
    return process !== null && job !== null && owners.isOvertaken(process, job)
  }

  // The ledger looks first: what the others ask of the mirror's walks is then as it stands.
  const ofOwners = [
    ledger,
    listenWith({
      'run finished': ({ job: { organization, collection } }) =>
        reap(jobName(organization.id, collection.name)),
    }),
    removals.tell,
    movements.tell,
    walks.tell,
    runs.tell,
    times.tell,
    freshness.tell,
  ]
  const ofAll = [watchHolds(context), watchPace(context), owners.tell]

  function compareAll(): void {
    const check = mirror.value('PRAGMA integrity_check')
    if (check !== 'ok') complain(`the mirror is damaged: ${String(check)}`)
    for (const job of jobs) reap(job)
    versions.compareAll(jobs)
  }

  function difference(filters: ListFilters): string | null {
    for (const [job, list] of lists) {
      const different = versions.difference(job, list, filters)
      if (different) return `${job}: ${different}`
    }
    return null
  }

  return {
    tell(happening) {
      // Who takes the job again is its owner from then on.
      const isOvertaken = happening.kind !== 'claimed' && isOfOvertaken(happening)
      // What it has in hand is lost with its job, which it may get back.
      if (isOvertaken && happening.kind === 'releasing') ledger(happening)
      for (const watcher of isOvertaken ? ofAll : [...ofOwners, ...ofAll]) watcher(happening)
      if (happening.kind === 'killed') compareAll()
    },
    difference,
    atRest(folder, tokens, filters) {
      compareAll()
      const different = difference(filters)
      if (different) complain(different)
      for (const file of filesIn(folder)) {
        const content = fs.readFileSync(file)
        for (const token of tokens)
          if (content.includes(token)) complain(`${token} stands in ${path.basename(file)}`)
      }
    },
  }
}

function actorOf(happening: Happening): SimulatedProcess | null {
  return 'process' in happening ? happening.process : null
}

function jobOf(happening: Happening): string | null {
  if ('request' in happening) return happening.request.job
  if (!('job' in happening) || typeof happening.job === 'string') return null
  return jobName(happening.job.organization.id, happening.job.collection.name)
}

function filesIn(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
}
