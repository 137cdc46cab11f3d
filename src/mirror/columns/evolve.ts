import type { JsonObject } from '../../json/exact.ts'
import { printable } from '../../text.ts'
import { type Catalog, type Draft, openDraft, type Slot, sealDraft, slotAt } from './catalog.ts'
import { type Column, type ColumnChange, type ColumnWarning, MOST_COLUMNS } from './column.ts'
import { flatten, type Leaf, type Place, pathOf } from './flatten.ts'
import { columnName, foldName, freeName } from './name.ts'
import { needOf } from './need.ts'
import { sqlitePath } from './path.ts'
import { isWide, type OwnValue, ownValue, typeOf } from './sql-value.ts'

export interface Evolution {
  catalog: Catalog
  changes: ColumnChange[]
  warnings: ColumnWarning[]
}

/** A draft, and what was done to it. */
interface Work {
  draft: Draft
  isFullReported: boolean
  changes: ColumnChange[]
  warnings: ColumnWarning[]
}

/** The catalog that can hold the item, and how it differs from this one. For items that do not fit as it is. */
export function evolve(catalog: Catalog, item: JsonObject): Evolution {
  const draft = openDraft(catalog.columns, catalog.keyPaths)
  const work: Work = { draft, isFullReported: catalog.isFullReported, changes: [], warnings: [] }
  flatten(item, draft.root, (place, slot, value) => adapt(work, place, slot, value))
  return {
    catalog: sealDraft(draft, work.isFullReported),
    changes: work.changes,
    warnings: work.warnings,
  }
}

function adapt(work: Work, place: Place, slot: Slot | undefined, value: Leaf): void {
  const own = ownValue(value)
  const need = needOf(slot, value, own)
  if (need === 'none') return
  // Here a path is spelled out for the first time: of the fields that find no room there may be millions.
  if (slot && (need === 'widen' || need === 'wide')) alter(work, slot, need)
  else if (work.draft.count >= MOST_COLUMNS) reportFull(work, place)
  else if (slot && need === 'text') addText(work, slot, pathOf(place))
  else addMain(work, pathOf(place), own)
}

function addMain(work: Work, path: string[], own: OwnValue): void {
  const name = columnName(path, isTakenIn(work.draft))
  const slot = slotAt(work.draft.root, path)
  slot.main = { name, path: sqlitePath(path), type: typeOf(own), role: 'value', wide: isWide(own) }
  add(work, slot.main)
}

function alter({ draft, changes }: Work, slot: Slot, kind: 'widen' | 'wide'): void {
  if (!slot.main) return
  const column: Column = kind === 'wide' ? { ...slot.main, wide: true } : { ...slot.main, type: 'REAL' }
  draft.columns[draft.columns.indexOf(slot.main)] = column
  slot.main = column
  changes.push({ kind, column })
}

function addText(work: Work, slot: Slot, path: string[]): void {
  if (!slot.main) return
  const { name: main, type } = slot.main
  const name = freeName(`${main}__text`, isTakenIn(work.draft))
  slot.text = { name, path: sqlitePath(path), type: 'TEXT', role: 'text', wide: false }
  add(work, slot.text)
  const message = `column ${main} is ${type} and met a value that does not fit it: such values go, as text, to column ${name}`
  work.warnings.push({ kind: 'text-sibling', column: name, path: slot.text.path, message })
}

function add({ draft, changes }: Work, column: Column): void {
  draft.columns.push(column)
  draft.names.add(foldName(column.name))
  draft.count++
  changes.push({ kind: 'add', column })
}

// Once in the life of a catalog: an object with generated names would otherwise fill the log.
function reportFull(work: Work, place: Place): void {
  if (work.isFullReported) return
  work.isFullReported = true
  const path = sqlitePath(pathOf(place))
  const message = `the table has ${MOST_COLUMNS} discovered columns, the most it can have: ${printable(path, 100)} and all further new fields stay in _json only`
  work.warnings.push({ kind: 'too-many-columns', path, message })
}

function isTakenIn(draft: Draft): (name: string) => boolean {
  return (name) => draft.names.has(foldName(name))
}
