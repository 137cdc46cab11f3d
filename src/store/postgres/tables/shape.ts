import { type KeyPaths, keyColumnNames, type TableShape } from '../../columns/catalog.ts'
import { eventKeyNames, selectChanges } from '../../columns/changes-view.ts'
import { changesViewName } from '../../core/names.ts'
import { POSTGRES } from '../driver.ts'
import { POSTGRES_LIMITS, quoted } from '../sql.ts'

export function keyNames(keyPaths: KeyPaths): string[] {
  return keyColumnNames(keyPaths, POSTGRES_LIMITS)
}

/** The statements that make the view of changes, with its comment. */
export function changesViewSql({ name, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>): string[] {
  const view = quoted(changesViewName(name))
  const select = selectChanges({
    raw: quoted(`${name}_raw`),
    history: quoted(`${name}_history`),
    keys: ['_organization_id', ...keyColumns].map(quoted),
    names: ['_organization_id', ...eventKeyNames(keyColumns, POSTGRES_LIMITS)].map(quoted),
    order: '"_sequence"',
    seq: POSTGRES.seqOf,
  })
  return [`CREATE VIEW ${view} AS\n${select}`, ...POSTGRES.comment(`VIEW ${view}`, commentOfChanges(name))]
}

export function commentOfChanges(name: string): string {
  return `One row an event of ${name}, of history and live rows.`
}
