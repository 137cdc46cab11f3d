import type { Job } from '../../../sync/types.ts'
import { splitKey } from '../../columns/catalog.ts'
import {
  type RawLine,
  type RebuildWork,
  type Rebuilt,
  type Restored,
  rebuildCollection as rebuild,
  typedLines,
} from '../../core/rebuild.ts'
import { type Keys, type Rule, timeOf } from '../../core/sql.ts'
import type { ConfiguredCollection } from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { createCollections } from './collection.ts'
import { isTaken, replaceView, type WantedItems } from './fit.ts'
import { loadViews } from './records.ts'
import { keyNames } from './shape.ts'

interface RebuildOptions {
  now: () => number
  signal: AbortSignal
}

/** See core/rebuild.ts. */
export function rebuildCollection(
  server: Server,
  name: string,
  { now, signal }: RebuildOptions,
): Promise<Rebuilt> {
  const work: RebuildWork = {
    dialect: POSTGRES,
    time: () => timeOf(now()),
    reading: (rule) => runRule(server, rule),
    writing: (begin) => server.transaction((sql) => runRule(sql, begin())),
    restore: createRestore(server, now),
    replaceViews: ({ key }) =>
      server.transaction(async (sql) => {
        let replaced = 0
        for (const view of (await loadViews(sql, name)).values()) {
          if (await isTaken(sql, view.name)) continue
          await replaceView(sql, name, keyNames(splitKey(key)), view)
          replaced++
        }
        return replaced
      }),
    async inBatches(batch) {
      while (!signal.aborted) if (await batch()) return true
      return false
    },
  }
  return rebuild(work, name)
}

function createRestore(server: Server, now: () => number): RebuildWork['restore'] {
  const collections = createCollections(server)

  /** The rows that were written, or the items for which the columns have to be extended first. */
  function attempt(job: Job, read: (keys: Keys) => Rule<RawLine[]>): Promise<RawLine[] | WantedItems> {
    return collections.retrying(job, (tables) =>
      server.transaction(async (sql) => {
        const lines = await runRule(sql, read(tables.shape))
        const wanted = { keys: [], items: lines.map(({ item }) => item) }
        const rows = tables.typed(wanted)
        if (!rows) return wanted
        await runRule(sql, tables.writer.writeTyped(typedLines(lines, rows)))
        return lines
      }),
    )
  }

  return async (collection: ConfiguredCollection, read): Promise<Restored> => {
    const job = { organization: { id: '', name: '' }, collection } as Job
    const notices: Restored['notices'][number][] = []
    for (;;) {
      const done = await attempt(job, read)
      if (Array.isArray(done)) return { lines: done, notices }
      notices.push(...(await collections.fit(job, done, timeOf(now()))).notices)
    }
  }
}
