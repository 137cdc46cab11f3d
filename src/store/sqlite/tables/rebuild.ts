import { keyColumnNames, splitKey } from '../../columns/catalog.ts'
import { type RebuildWork, type Rebuilt, rebuildCollection, typedLines } from '../../core/rebuild.ts'
import { timeOf } from '../../core/sql.ts'
import { collectionNames } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import { createMaintenance } from '../maintenance.ts'
import type { Connection } from '../sql.ts'
import { inBatches, type Patience, type Transact } from '../transaction.ts'
import { changeColumnsAndWrite } from './alter.ts'
import { replaceViews } from './array-views.ts'
import { openCollection } from './collection.ts'

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
  const time = () => timeOf(patience.now())
  const options = { connection, transact, maintain: createMaintenance({ file, ...patience }), time }
  const work: RebuildWork = {
    dialect: SQLITE,
    time,
    reading: async (rule) => runRule(connection, rule),
    writing: (begin) => transact(() => runRule(connection, begin())),
    async restore(collection, read) {
      const write = () => {
        const tables = openCollection(connection, collection)
        const lines = runRule(connection, read(tables.shape))
        const rows = tables.toRows(
          [],
          lines.map(({ item }) => item),
        )
        if (rows.changes) return rows
        runRule(connection, tables.writeTyped(typedLines(lines, rows.result)))
        return { result: lines, notices: [...rows.notices, ...tables.extendViews(rows.result, time())] }
      }
      const { result, notices } = await changeColumnsAndWrite(
        options,
        collection.name,
        await transact(write),
        write,
      )
      return { lines: result, notices }
    },
    replaceViews: ({ name, key }) =>
      transact(() => {
        const shape = { name, keyColumns: keyColumnNames(splitKey(key)) }
        return replaceViews(connection, shape)
      }),
    inBatches: (batch) => inBatches(patience, batch),
  }
  return {
    collections: () => runRule(connection, collectionNames()),
    collection: (name) => rebuildCollection(work, name),
  }
}
