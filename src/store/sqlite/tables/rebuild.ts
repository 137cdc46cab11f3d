import { type RebuildWork, type Rebuilt, rebuildCollection } from '../../core/rebuild.ts'
import { timeOf } from '../../core/sql.ts'
import { collectionNames } from '../../core/tables.ts'
import { runRule } from '../driver.ts'
import { createMaintenance } from '../maintenance.ts'
import type { Connection } from '../sql.ts'
import { inBatches, type Patience, type Transact } from '../transaction.ts'
import { ALTERATION } from './alter.ts'
import { createFileTables } from './collection.ts'

/** Makes what analysts query again from the raw rows. */
export interface TypedTableRebuild {
  /** The names of the mirror's collections. */
  collections(): string[]
  /** See core/rebuild.ts. */
  collection(name: string): Promise<Rebuilt>
}

export interface RebuildOptions extends Patience {
  connection: Connection
  file: string
  transact: Transact
}

export function createTypedTableRebuild({
  connection,
  file,
  transact,
  ...patience
}: RebuildOptions): TypedTableRebuild {
  const tables = createFileTables(connection, file, transact, createMaintenance({ file, ...patience }))
  const work: RebuildWork = {
    ...tables,
    alteration: ALTERATION,
    time: () => timeOf(patience.now()),
    reading: async (rule) => runRule(connection, rule),
    writing: (begin) => transact(() => runRule(connection, begin())),
    inBatches: (batch) => inBatches(patience, batch),
  }
  return {
    collections: () => runRule(connection, collectionNames()),
    collection: (name) => rebuildCollection(work, name),
  }
}
