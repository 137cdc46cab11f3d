import { CHANGES_END, selectChanges } from '../../columns/changes-view.ts'
import { eventKeyNames } from '../../columns/event-keys.ts'
import { cutName, literal, POSTGRES_LIMITS, quoted } from '../sql.ts'
import { seqSql } from './seq.ts'

export function changesViewName(collection: string): string {
  return cutName(collection, CHANGES_END.length) + CHANGES_END
}

/** CREATE VIEW, with its comment. */
export function changesViewSql(name: string, keyColumns: readonly string[]): string {
  const view = quoted(changesViewName(name))
  const select = selectChanges({
    raw: quoted(`${name}_raw`),
    history: quoted(`${name}_history`),
    keys: ['_organization_id', ...keyColumns].map(quoted),
    names: ['_organization_id', ...eventKeyNames(keyColumns, POSTGRES_LIMITS)].map(quoted),
    order: '"_sequence"',
    seq: seqSql,
  })
  return `CREATE VIEW ${view} AS
${select};
COMMENT ON VIEW ${view} IS ${literal(commentOfChanges(name))}`
}

export function commentOfChanges(name: string): string {
  return `One row an event of ${name}, of history and live rows.`
}
