import fs from 'node:fs'
import path from 'node:path'
import { type Happening, listenWith } from '../happening.ts'
import type { ListFilters, SimulatedList } from '../list.ts'
import { jobOf } from '../story.ts'
import type { OracleContext } from './context.ts'
import { watchFreshness } from './freshness.ts'
import { watchHolds } from './holds.ts'
import { watchLedger } from './ledger.ts'
import { watchOwners } from './owners.ts'
import { watchPace } from './pace.ts'
import { watchRemovals } from './removals.ts'
import { watchRuns } from './runs.ts'
import { watchVersions } from './versions.ts'
import { watchWalks } from './walks.ts'

/** Knows the promises, and complains when one is broken. Written apart from the program: it shares no code with it. */
export function createOracle(context: OracleContext, lists: ReadonlyMap<string, SimulatedList>) {
  const { mirror, complain } = context
  const versions = watchVersions(context)
  const runs = watchRuns(context)
  const removals = watchRemovals(context)
  const walks = watchWalks(context, lists)
  const freshness = watchFreshness(context, lists, versions.liveOf)
  const owners = watchOwners(context)
  const ledger = watchLedger(context, {
    onSaved(inHand, walk) {
      const { request } = inHand
      const { process, job } = request
      if (owners.isOvertaken(process, job))
        complain(`${process.name} writes a page of a job that it has lost`, job)
      if (walk) walks.onSaved(inHand, walk)
      const saved = versions.onSaved(inHand, walk)
      runs.onSaved(request, saved)
      if (walk) removals.onSaved(inHand, walk)
      else {
        removals.onRefreshed(inHand)
        freshness.onRefreshed(job, saved.at)
      }
    },
    onWalk(job, walk, before) {
      if (freshness.isUnderWay(job)) complain(`walk ${walk.id} changes while the list is refreshed`, job)
      walks.onWalk(job, walk, before)
      if (before === null) removals.onBegun(job, walk.id)
      if (walk.status !== 'complete' || before?.status === 'complete') return
      takeGone(job)
      removals.onComplete(job, walk, versions.liveIds(job))
      freshness.onComplete(job, walk)
    },
  })

  /** Rows are only ever removed while a run of their job is under way. */
  function takeGone(job: string): void {
    const gone = versions.takeGone(job)
    if (gone.length === 0) return
    if (freshness.isUnderWay(job)) complain('a refresh removes items', job)
    runs.onGone(job, gone.length)
    removals.takeGone(job, gone)
  }

  /** What is left of an overtaken process: its last answer, and the end of a run that its successor has ended already. */
  function isOfOvertaken(happening: Happening): boolean {
    const job = jobOf(happening)
    const { process } = 'request' in happening ? happening.request : { process: null, ...happening }
    return process !== null && job !== null && owners.isOvertaken(process, job)
  }

  // The ledger looks first: what the others ask of the mirror's walks is then as it stands.
  const ofOwners = [
    ledger,
    listenWith({ 'run finished': ({ job }) => takeGone(job) }),
    removals.tell,
    walks.tell,
    runs.tell,
    freshness.tell,
  ]
  const ofAll = [watchHolds(context), watchPace(context), owners.tell]

  function compareAll(): void {
    const [check] = mirror.rows('PRAGMA integrity_check')
    if (check?.integrity_check !== 'ok') complain(`the mirror is damaged: ${String(check?.integrity_check)}`)
    for (const job of lists.keys()) takeGone(job)
    for (const job of lists.keys()) versions.compareAll(job)
  }

  /** How some list and its mirror differ; null where all are equal. */
  function difference(filters: ListFilters): string | null {
    for (const [job, list] of lists) {
      const different = versions.difference(job, list, filters)
      if (different) return `${job}: ${different}`
    }
    return null
  }

  return {
    tell(happening: Happening): void {
      // Who takes the job again is its owner from then on.
      const isOvertaken = happening.kind !== 'claimed' && isOfOvertaken(happening)
      // What it has in hand is lost with its job, which it may get back.
      if (isOvertaken && happening.kind === 'releasing') ledger(happening)
      for (const watcher of isOvertaken ? ofAll : [...ofOwners, ...ofAll]) watcher(happening)
      if (happening.kind === 'killed') compareAll()
    },
    difference,
    /** When all processes are gone, the server has come to rest, and a last sync has had its turn. */
    atRest(folder: string, tokens: readonly string[], filters: ListFilters): void {
      compareAll()
      const different = difference(filters)
      if (different) complain(different)
      const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true })
      for (const { name, parentPath } of files.filter((entry) => entry.isFile())) {
        const content = fs.readFileSync(path.join(parentPath, name))
        for (const token of tokens) if (content.includes(token)) complain(`${token} stands in ${name}`)
      }
    },
  }
}
