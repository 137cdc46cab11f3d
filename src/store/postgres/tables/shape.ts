import { type KeyPaths, keyColumnNames } from '../../columns/catalog.ts'
import { eventKeyNames, selectChanges } from '../../columns/changes-view.ts'
import { POSTGRES } from '../driver.ts'
import { POSTGRES_LIMITS, quoted } from '../sql.ts'

export function keyNames(keyPaths: KeyPaths): string[] {
  return keyColumnNames(keyPaths, POSTGRES_LIMITS)
}

export function changesSelect(name: string, keyColumns: readonly string[]): string {
  return selectChanges({
    raw: quoted(`${name}_raw`),
    history: quoted(`${name}_history`),
    keys: ['_organization_id', ...keyColumns].map(quoted),
    names: ['_organization_id', ...eventKeyNames(keyColumns, POSTGRES_LIMITS)].map(quoted),
    order: '"_sequence"',
    seq: POSTGRES.seqOf,
  })
}
