import { type Rebuilt, rebuildCollection as rebuild } from '../../core/rebuild.ts'
import { type Rule, timeOf } from '../../core/sql.ts'
import { runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { ALTERATION } from './alter.ts'
import { createServerTables } from './collection.ts'

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
  const work = {
    ...createServerTables(server),
    alteration: ALTERATION,
    time: () => timeOf(now()),
    reading: <T>(rule: Rule<T>) => runRule(server, rule),
    writing: <T>(begin: () => Rule<T>) => server.transaction((sql) => runRule(sql, begin())),
    async inBatches(batch: () => Promise<boolean>) {
      while (!signal.aborted) if (await batch()) return true
      return false
    },
  }
  return rebuild(work, name)
}
