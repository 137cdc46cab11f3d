import fs from 'node:fs'
import path from 'node:path'
import type { Happening } from '../happening.ts'
import type { SimulatedList } from '../list.ts'
import type { OracleContext } from './context.ts'
import { watchHolds } from './holds.ts'
import { watchLedger } from './ledger.ts'
import { watchMovements } from './movements.ts'
import { watchOwners } from './owners.ts'
import { watchPace } from './pace.ts'
import { watchRuns } from './runs.ts'
import { watchVersions } from './versions.ts'
import { watchStillWalks } from './walks.ts'

/** Knows the promises, and complains when one is broken. Written apart from the program: it shares no code with it. */
export interface Oracle {
  tell(happening: Happening): void
  /** When all processes are gone, the server has come to rest, and a last sync has had its turn. */
  atRest(folder: string, tokens: readonly string[]): void
}

export function createOracle(context: OracleContext, lists: ReadonlyMap<string, SimulatedList>): Oracle {
  const { mirror, complain } = context
  const jobs = [...lists.keys()]
  const versions = watchVersions(context)
  const runs = watchRuns(context)
  const movements = watchMovements(context, lists)
  const walks = watchStillWalks(context, movements)
  const ledger = watchLedger(context, {
    onSaved(inHand, walk) {
      movements.onSaved(inHand, walk)
      walks.onSaved(inHand, walk)
      runs.onSaved(inHand, versions.onSaved(inHand))
    },
    onWalk(job, walk, before) {
      movements.onWalk(job, walk, before)
      walks.onWalk(job, walk, before)
    },
  })
  // The ledger looks first: what the others ask of the mirror's walks is then as it stands.
  const watchers = [
    ledger,
    movements.tell,
    walks.tell,
    runs.tell,
    watchHolds(context),
    watchPace(context),
    watchOwners(context),
  ]

  function compareAll(): void {
    const check = mirror.value('PRAGMA integrity_check')
    if (check !== 'ok') complain(`the mirror is damaged: ${String(check)}`)
    versions.compareAll(jobs)
  }

  return {
    tell(happening) {
      for (const watcher of watchers) watcher(happening)
      if (happening.kind === 'killed') compareAll()
    },
    atRest(folder, tokens) {
      compareAll()
      versions.compareLists(lists)
      for (const file of filesIn(folder)) {
        const content = fs.readFileSync(file)
        for (const token of tokens)
          if (content.includes(token)) complain(`${token} stands in ${path.basename(file)}`)
      }
    },
  }
}

function filesIn(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
}
