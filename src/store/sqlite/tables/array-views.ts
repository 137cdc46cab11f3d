import { isJsonObject } from '../../../json/value.ts'
import type { Notice } from '../../../sync/types.ts'
import { discoverElements } from '../../columns/elements.ts'
import type { ArrayValue } from '../../columns/row.ts'
import type { Connection } from '../file/open.ts'
import { createRecorder, loadViews } from './column-records.ts'
import { type ArrayView, replaceView, type TableShape } from './declarations.ts'

/** The views of a collection's arrays of objects: `orders__items`. */
export interface ArrayViews {
  /** Makes the views that these arrays ask for, or makes them anew with further columns. Returns notices for the log. */
  discover(arrays: readonly ArrayValue[], shape: () => TableShape): Notice[]
}

export function openArrayViews(connection: Connection, collection: string): ArrayViews {
  const views = loadViews(connection, collection)
  const record = createRecorder(connection, collection)
  const strangers = new Set<string>()

  function save(view: ArrayView, shape: TableShape): void {
    views.set(view.name, view)
    for (const element of view.elements) record.element(view, element)
    replaceView(connection, shape, view)
  }

  /** A table or view of this name that we did not make belongs to a user, and is left alone. */
  function isTaken(name: string): boolean {
    const sql = 'SELECT 1 FROM sqlite_schema WHERE name = ? COLLATE NOCASE'
    return !views.has(name) && connection.prepare(sql).get(name) !== undefined
  }

  return {
    discover(arrays, shape) {
      const notices: Notice[] = []
      for (const { column, array } of arrays) {
        if (!array.some(isJsonObject)) continue
        const name = `${collection}__${column}`
        const known = views.get(name)?.elements ?? []
        const elements = discoverElements(known, array)
        if (elements === known || strangers.has(name)) continue
        if (!isTaken(name)) save({ name, arrayColumn: column, elements }, shape())
        else {
          strangers.add(name)
          notices.push({
            level: 'warn',
            message: `the name ${name} is taken, so there is no view of that array`,
          })
        }
      }
      return notices
    },
  }
}
