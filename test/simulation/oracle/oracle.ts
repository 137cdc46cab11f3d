import fs from 'node:fs'
import path from 'node:path'
import { concernOf, type Happening } from '../happening.ts'
import type { ListFilters, SimulatedList } from '../list.ts'
import type { OracleContext } from './context.ts'
import { watchFreshness } from './freshness.ts'
import { watchHolds } from './holds.ts'
import { type Finding, watchLedger } from './ledger.ts'
import { watchOwners } from './owners.ts'
import { watchPace } from './pace.ts'
import { watchRemovals } from './removals.ts'
import { watchRuns } from './runs.ts'
import { knowVersions } from './versions.ts'
import { watchWalks } from './walks.ts'

/** Knows the promises, and complains when one is broken. Written apart from the program: it shares no code with it. */
export function createOracle(context: OracleContext, lists: ReadonlyMap<string, SimulatedList>) {
  const { mirror, complain } = context
  const versions = knowVersions(context)
  const owners = watchOwners(context)
  const ledger = watchLedger(context, versions, tellAll)
  // The ledger looks first: what the others ask of the mirror's walks is then as it stands.
  const ofOwners = [
    ledger.hear,
    watchWalks(context, lists),
    versions.watch(tellAll),
    watchRemovals(context, versions),
    watchRuns(context),
    watchFreshness(context, lists, versions.liveOf),
  ]
  const ofAll = [watchHolds(context), watchPace(context)]

  function tellAll(found: Finding): void {
    // Who takes the job again is its owner from then on.
    const isOvertaken = found.kind !== 'claimed' && isOfOvertaken(found)
    owners.hear(found)
    // What it has in hand is lost with its job, which it may get back.
    if (isOvertaken && found.kind === 'releasing') ledger.hear(found)
    for (const hear of isOvertaken ? ofAll : [...ofOwners, ...ofAll]) hear(found)
  }

  /** What is left of an overtaken process: its last answer, and the end of a run that its successor has ended already. */
  function isOfOvertaken(found: Finding): boolean {
    const { process, job } = concernOf(found)
    return process !== undefined && job !== undefined && owners.isOvertaken(process, job)
  }

  function compareAll(): void {
    const [check] = mirror.rows('PRAGMA integrity_check')
    if (check?.integrity_check !== 'ok') complain(`the mirror is damaged: ${String(check?.integrity_check)}`)
    for (const job of lists.keys()) ledger.takeGone(job)
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
    hear(happening: Happening): void {
      const { kind } = happening
      tellAll(
        kind === 'killed' || kind === 'ended' ? { kind: 'over', process: happening.process } : happening,
      )
      if (kind === 'killed') compareAll()
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
