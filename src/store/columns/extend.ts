import { isJsonObject, type JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import {
  type Catalog,
  type ColumnSlot,
  type Draft,
  type KeyType,
  keyColumnNames,
  keyColumnTypes,
  openDraft,
  type PathNode,
  sealDraft,
  slotAt,
} from './catalog.ts'
import {
  type Column,
  type ColumnChange,
  columnName,
  foldName,
  freeName,
  type Leaf,
  sqlitePath,
} from './column.ts'
import {
  changeFor,
  hasNumbersAsNames,
  isListWithHoles,
  isWide,
  type OwnValue,
  ownValue,
  typeOf,
} from './row.ts'

export interface Extension {
  catalog: Catalog
  /** In the order in which they have to be made. */
  changes: ColumnChange[]
  /** What to report. */
  warnings: string[]
}

interface Work extends Draft {
  warnings: string[]
  /** Whether the current pass over the items has changed it. */
  isChanged: boolean
}

/**
 * Returns the catalog that can hold all these keys and items, and how it differs from this one. It reads all
 * items before any column is made, so that 20 and 19.99 on one page give one REAL column.
 */
export function extendCatalog(
  catalog: Catalog,
  keys: readonly (readonly KeyPart[])[],
  items: readonly JsonObject[],
): Extension {
  const work: Work = { ...openDraft(withKeys(catalog, keys), catalog), warnings: [], isChanged: true }
  // First without what may be a list with holes: lists on the same page tell. Read again after a change: a boolean that an INTEGER column
  // could hold does not fit a REAL one.
  for (let pass = 1; work.isChanged; pass++) {
    work.isChanged = pass === 1
    for (const item of items)
      flatten(item, work.root, pass === 1, (field, slot, value) => adapt(work, field, slot, value))
  }
  const { warnings, isChanged: _done, ...draft } = work
  const extended = sealDraft(draft)
  if (extended.isFull && !catalog.isFull)
    warnings.push(
      `the table has ${draft.limits.mostColumns} discovered columns, the most it can have: all further new fields stay in _json only`,
    )
  return { catalog: extended, changes: changesBetween(catalog.columns, draft.columns), warnings }
}

/** What to report of an extension, for the log. */
export function extensionNotices({ changes, warnings }: Pick<Extension, 'changes' | 'warnings'>): Notice[] {
  const widened = changes.filter(({ kind, column }) => kind === 'type' && column.role !== 'key')
  return [
    ...warnings.map((message): Notice => ({ level: 'warn', message })),
    ...widened.map(({ column }): Notice => {
      return { level: 'info', message: `column ${column.name} holds fractions from now on (REAL)` }
    }),
  ]
}

/** The columns, with the types that these keys need. */
function withKeys(catalog: Catalog, keys: readonly (readonly KeyPart[])[]): Column[] {
  if (keys.length === 0) return [...catalog.columns]
  const types = keys.reduce<readonly (KeyType | null)[]>(keyColumnTypes, catalog.keyTypes)
  const keyColumns = keyColumnNames(catalog.keyPaths, catalog.limits).map((name, index): Column => {
    const path = sqlitePath(catalog.keyPaths[index] ?? [])
    return { name, path, type: types[index] ?? 'TEXT', role: 'key', wide: false }
  })
  return [...keyColumns, ...catalog.columns.filter(({ role }) => role !== 'key')]
}

function changesBetween(before: readonly Column[], after: readonly Column[]): ColumnChange[] {
  const known = new Map(before.map((column) => [column.name, column]))
  return after.flatMap((column): ColumnChange[] => {
    const former = known.get(column.name)
    if (!former) return [{ kind: 'add', column }]
    if (former.type !== column.type) return [{ kind: 'type', column }]
    return former.wide === column.wide ? [] : [{ kind: 'wide', column }]
  })
}

function adapt(work: Work, field: FieldPath, slot: ColumnSlot | undefined, value: Leaf): void {
  const own = ownValue(value)
  const change = changeFor(slot, value, own)
  if (change === 'none') return
  // No path is spelled out before this line: millions of fields may be left out.
  if (slot?.main && change === 'widen') replace(work, slot, slot.main, { ...slot.main, type: 'REAL' })
  else if (slot?.main && change === 'wide') replace(work, slot, slot.main, { ...slot.main, wide: true })
  else if (work.count >= work.limits.mostColumns) return
  else if (slot && change === 'text') addText(work, slot, pathOf(field))
  else addMain(work, pathOf(field), own)
}

function addMain(work: Work, path: string[], own: OwnValue): void {
  const name = columnName(path, isTakenIn(work), work.limits)
  const column: Column = { name, path: sqlitePath(path), type: typeOf(own), role: 'value', wide: isWide(own) }
  slotAt(work.root, path).main = column
  add(work, column)
}

function replace(work: Work, slot: ColumnSlot, before: Column, after: Column): void {
  const { columns } = work
  columns[columns.indexOf(before)] = after
  slot.main = after
  work.isChanged = true
}

function addText(work: Work, slot: ColumnSlot, path: string[]): void {
  if (!slot.main) return
  const { name: main, type } = slot.main
  const name = freeName(main, isTakenIn(work), work.limits, '__text')
  slot.text = { name, path: sqlitePath(path), type: 'TEXT', role: 'text', wide: false }
  add(work, slot.text)
  const message = `column ${main} is ${type}, and a value came that does not fit that type: such values are stored as text in column ${name}`
  work.warnings.push(message)
}

function add(work: Work, column: Column): void {
  work.columns.push(column)
  work.names.add(foldName(column.name))
  work.count++
  work.isChanged = true
}

function isTakenIn(draft: Draft): (name: string) => boolean {
  return (name) => draft.names.has(foldName(name))
}

/** A value's name, linked to the object around it, so that millions of deep values share what is above. */
interface FieldPath {
  name: string
  above: FieldPath | null
}

/** The names from the item down to the value. */
function pathOf(field: FieldPath): string[] {
  const names: string[] = []
  for (let at: FieldPath | null = field; at; at = at.above) names.push(at.name)
  return names.toReversed()
}

/**
 * Visits every leaf of an item in order, with what the tree knew about its path when its object was entered.
 * The visit may add to the tree.
 */
function flatten(
  item: JsonObject,
  node: PathNode | undefined,
  withoutHoles: boolean,
  visit: (field: FieldPath, slot: ColumnSlot | undefined, value: Leaf) => void,
  above: FieldPath | null = null,
): void {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const field = { name, above }
    const child = node?.children.get(name)
    if (!isJsonObject(value)) visit(field, child?.slot, value)
    else if (isListWithHoles(value, child)) visit(field, child?.slot, Object.values(value))
    else if (!withoutHoles || !hasNumbersAsNames(value)) flatten(value, child, withoutHoles, visit, field)
  }
}
