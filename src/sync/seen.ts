import { hash } from 'node:crypto'
import type { ListPosition, Question } from './coverage/state.ts'
import { isRejectId, type ListedItem } from './items.ts'
import type { LedgerEntry } from './store.ts'
import type { Checkpoint, Page } from './types.ts'

export type SeenItems = ReturnType<typeof createSeenItems>

/** The order of a walk's items. */
type ListOrder = Pick<SeenItems, 'after' | 'before' | 'first' | 'distance'>

/**
 * The distinct items that a walk has seen, each with its answer and its position there. 36 bytes per item, in memory;
 * a process that resumes the walk rebuilds it from the page ledger.
 * @param salt See `createIdTable`.
 */
export function createSeenItems(salt: number) {
  const ids = createIdTable(salt)
  // By item. The items of an answer form a linked list; a link is an item's number plus 1, or 0 at the end.
  const segments = new ChunkedArray(Uint32Array)
  const positions = new ChunkedArray(Float64Array)
  const links = { next: new ChunkedArray(Uint32Array), previous: new ChunkedArray(Uint32Array) }
  // By answer.
  const passes = new ChunkedArray(Uint32Array)
  const heads = new ChunkedArray(Uint32Array)
  const counts = new ChunkedArray(Uint32Array)
  let answers = 0
  let rejects = 0

  function unlink(item: number): void {
    const segment = segments.get(item)
    const next = links.next.get(item)
    const previous = links.previous.get(item)
    if (previous === 0) heads.set(segment, next)
    else links.next.set(previous - 1, next)
    if (next !== 0) links.previous.set(next - 1, previous)
    counts.set(segment, counts.get(segment) - 1)
  }

  function link(item: number, segment: number): void {
    const head = heads.get(segment)
    links.next.set(item, head)
    links.previous.set(item, 0)
    if (head !== 0) links.previous.set(head - 1, item + 1)
    heads.set(segment, item + 1)
    counts.set(segment, counts.get(segment) + 1)
  }

  function put(id: string, { segment, position }: ListPosition): void {
    const { size } = ids
    const item = ids.add(id)
    if (item < size) unlink(item)
    else if (isRejectId(id)) rejects++
    segments.set(item, segment)
    positions.set(item, position)
    link(item, segment)
  }

  function* positionsIn(segment: number): Generator<number> {
    for (let item = heads.get(segment); item !== 0; item = links.next.get(item - 1))
      yield positions.get(item - 1)
  }

  function countUpTo({ segment, position }: ListPosition): number {
    return positionsIn(segment).reduce((count, other) => count + (other <= position ? 1 : 0), 0)
  }

  return {
    /** The ordinal of the walk's last answer; 0 before the first. */
    get answers() {
      return answers
    },
    get items() {
      return ids.size
    },
    /** Items with a usable key. */
    get keyed() {
      return ids.size - rejects
    },
    has: (id: string): boolean => ids.find(id) !== undefined,
    /** The item's position, and the pass that found it there. */
    find(id: string): (ListPosition & { pass: number }) | undefined {
      const item = ids.find(id)
      if (item === undefined) return undefined
      const segment = segments.get(item)
      return { pass: passes.get(segment), segment, position: positions.get(item) }
    },
    /** Adds an answer. Call it after each commit, or for each line of the page ledger in order. */
    add({ ordinal, pass, ids: listed, positions: found }: LedgerEntry): void {
      answers = ordinal
      passes.set(ordinal, pass)
      for (const [index, id] of listed.entries()) {
        const position = found === null ? { segment: ordinal, position: index } : found[index]
        if (position) put(id, position)
      }
    },
    /** The next position in the same answer; `before`: the previous one; `first`: an answer's first one. Null if there is none. */
    after: ({ segment, position }: ListPosition) =>
      least(positionsIn(segment).filter((other) => other > position)),
    before({ segment, position }: ListPosition) {
      const below = positionsIn(segment).filter((other) => other < position)
      return below.reduce<number | null>((most, other) => Math.max(most ?? other, other), null)
    },
    first: (segment: number) => least(positionsIn(segment)),
    /** How many items follow the first position, up to and including the second. */
    distance(from: ListPosition, to: ListPosition): number {
      let rows = 0
      for (let segment = from.segment; segment < to.segment; segment++) rows += counts.get(segment)
      return rows - countUpTo(from) + countUpTo(to)
    },
  }
}

function least(positions: Iterable<number>): number | null {
  let lowest: number | null = null
  for (const position of positions) lowest = Math.min(lowest ?? position, position)
  return lowest
}

const CHUNK_BITS = 12
const CHUNK_SLOTS = 1 << CHUNK_BITS

/** An array of numbers, 0 at first. Grows by chunks, so nothing is ever copied. */
class ChunkedArray {
  readonly #chunks: (Uint32Array | Float64Array)[] = []
  readonly #Chunk: Uint32ArrayConstructor | Float64ArrayConstructor

  constructor(Chunk: Uint32ArrayConstructor | Float64ArrayConstructor) {
    this.#Chunk = Chunk
  }

  get(index: number): number {
    return this.#chunks[index >>> CHUNK_BITS]?.[index & (CHUNK_SLOTS - 1)] ?? 0
  }

  set(index: number, value: number): void {
    const number = index >>> CHUNK_BITS
    while (this.#chunks.length <= number) this.#chunks.push(new this.#Chunk(CHUNK_SLOTS))
    const chunk = this.#chunks[number]
    if (chunk) chunk[index & (CHUNK_SLOTS - 1)] = value
  }
}

/** The initial number of slots. The table doubles when three of four are taken. */
const FEWEST_SLOTS = 1024

/**
 * Numbers distinct ids from 0 on. A hash table without strings: it keeps 64 bits of each id's hash. Two ids with equal bits get the same number;
 * among a million ids the probability is 3 in 10^8.
 * @param salt Changes all hashes, so that the next walk does not meet the same collision.
 */
function createIdTable(salt: number) {
  const high = new ChunkedArray(Uint32Array)
  const low = new ChunkedArray(Uint32Array)
  /** The number in each slot, plus 1; 0: the slot is free. */
  let slots = new Uint32Array(FEWEST_SLOTS)
  let size = 0

  /** The slot with these bits, or the free one where they belong. */
  function slotOf(bits: HashBits): number {
    const mask = slots.length - 1
    for (let slot = bits.low & mask; ; slot = (slot + 1) & mask) {
      const number = (slots[slot] ?? 0) - 1
      if (number === -1 || (low.get(number) === bits.low && high.get(number) === bits.high)) return slot
    }
  }

  function grow(): void {
    slots = new Uint32Array(slots.length * 2)
    for (let number = 0; number < size; number++)
      slots[slotOf({ high: high.get(number), low: low.get(number) })] = number + 1
  }

  return {
    get size() {
      return size
    },
    /** The id's number; undefined if it was not added. */
    find(id: string): number | undefined {
      const number = slots[slotOf(hashOf(salt, id))] ?? 0
      return number === 0 ? undefined : number - 1
    },
    /** Returns the id's number; a new id gets the current size. */
    add(id: string): number {
      if (size * 4 >= slots.length * 3) grow()
      const bits = hashOf(salt, id)
      const slot = slotOf(bits)
      const known = slots[slot] ?? 0
      if (known !== 0) return known - 1
      slots[slot] = size + 1
      high.set(size, bits.high)
      low.set(size, bits.low)
      return size++
    },
  }
}

interface HashBits {
  high: number
  low: number
}

function hashOf(salt: number, id: string): HashBits {
  const digits = hash('sha256', `${salt} ${id}`)
  return { high: Number.parseInt(digits.slice(0, 8), 16), low: Number.parseInt(digits.slice(8, 16), 16) }
}

/** A page compared with what the walk has seen. */
export interface PageMatch {
  /** The number of the answer in the page ledger. */
  ordinal: number
  pass: number
  why: Question['why']
  /** The distinct items of the page, in list order. */
  items: readonly ListedItem[]
  /** Items that are new to this walk, rejected ones too. */
  newToWalk: number
  newToPass: number
  /** The position of each item in this pass before this answer; null for a new one. */
  previous: (ListPosition | null)[]
  /** The position of each item after this answer. */
  positions: ListPosition[]
  /** The last known item at or before the position asked about, by its index on the page, and the number of items from it to there. */
  known: { index: number; distance: number } | null
}

/** Compares the items of a page with what the walk has seen; the checkpoint says why the page was asked for. */
export function matchPage(
  items: readonly ListedItem[],
  { pass, ask }: Checkpoint,
  seen: SeenItems,
): PageMatch {
  const why = ask?.why ?? 'forward'
  const ordinal = seen.answers + 1
  const before = items.map(({ id }) => seen.find(id))
  const previous = before.map((found) => (found?.pass === pass ? found : null))
  return {
    ordinal,
    pass,
    why,
    items,
    newToWalk: before.filter((found) => found === undefined).length,
    newToPass: previous.filter((found) => found === null).length,
    previous,
    positions:
      why === 'forward'
        ? previous.map((_, position) => ({ segment: ordinal, position }))
        : positionsFound(previous, seen, ask?.before ?? null, ordinal),
    known: ask?.until ? lastKnown(previous, ask.until, seen) : null,
  }
}

/** Returns the answer's line for the page ledger. */
export function ledgerEntry(page: Page, match: PageMatch): LedgerEntry {
  const { ordinal, pass, why, items, previous, positions } = match
  // A page that was asked for again does not move known items.
  const found = () => positions.map((position, index) => (previous[index] ? null : position))
  return {
    ordinal,
    pass,
    page: page.number,
    total: page.total,
    why,
    ids: items.map(({ id }) => id),
    positions: why === 'forward' ? null : found(),
  }
}

/**
 * The last known item at or before a position. Prefers one whose neighbour on the page is in the same segment: an
 * item that was moved is not where the ledger says.
 */
function lastKnown(
  previous: readonly (ListPosition | null)[],
  until: ListPosition,
  { distance }: ListOrder,
): PageMatch['known'] {
  const known = [...previous.keys()].filter((at) => isUpTo(previous[at], until))
  const index = known.findLast((at) => previous[at]?.segment === previous[at - 1]?.segment) ?? known.at(-1)
  const place = index === undefined ? null : previous[index]
  return index === undefined || !place ? null : { index, distance: distance(place, until) }
}

function isUpTo(place: ListPosition | null | undefined, until: ListPosition): boolean {
  if (!place) return false
  return (
    place.segment < until.segment || (place.segment === until.segment && place.position <= until.position)
  )
}

/**
 * The positions of the items of a page that was asked for again. A known item keeps its position; a new one goes after
 * the item before it on the page, or else in front of the first known one. Without any known item all go before
 * the segment `before`; null: they become a segment of their own.
 */
function positionsFound(
  known: readonly (ListPosition | null)[],
  neighbours: ListOrder,
  before: number | null,
  own: number,
): ListPosition[] {
  const first = known.findIndex((place) => place !== null)
  const anchor = known[first]
  if (!anchor) return known.map((_, index) => inFront(index - known.length, before, own, neighbours))
  const positions = leading(first, anchor, neighbours)
  for (let index = first; index < known.length; ) {
    const here = known[index]
    if (here) {
      positions.push(here)
      index++
      continue
    }
    const until = known.findIndex((place, at) => at > index && place !== null)
    const end = until === -1 ? known.length : until
    positions.push(...trailing(positions.at(-1) ?? anchor, end - index, neighbours))
    index = end
  }
  return positions
}

function inFront(offset: number, before: number | null, own: number, { first }: ListOrder): ListPosition {
  if (before === null) return { segment: own, position: offset }
  return { segment: before, position: Math.floor(first(before) ?? 0) + offset + 0.5 }
}

function leading(count: number, anchor: ListPosition, { before }: ListOrder): ListPosition[] {
  const low = Math.max(before(anchor) ?? anchor.position - 1, anchor.position - 1)
  return between(anchor.segment, low, anchor.position, count)
}

function trailing(place: ListPosition, count: number, { after }: ListOrder): ListPosition[] {
  const high = Math.min(after(place) ?? place.position + 1, place.position + 1)
  return between(place.segment, place.position, high, count)
}

/** Positions between two others, never whole numbers: those belong to items that were read in list order. */
function between(segment: number, low: number, high: number, count: number): ListPosition[] {
  const step = (high - low) / (count + 1)
  return Array.from({ length: count }, (_, index) => ({ segment, position: low + step * (index + 1) }))
}
