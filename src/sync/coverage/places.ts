/** Where a page in list order ended: its last item. */
export interface Frontier {
  page: number
  /** The item's place. */
  at: number
  /** Its index in the list, from 0 on. */
  index: number
  /** The total that the page named. */
  total: number | null
}

/** The last item of a page that was read before, and how far behind it the walk has read. */
export interface Located {
  /** Its position on the page, and its place. */
  at: number
  place: number
  /** How many items follow it, up to the frontier. */
  gap: number
}

/** An item that was seen, and has no place. */
const NOWHERE = -1

/**
 * The items that a walk has seen, and in which order its present pass read them. A place is a whole number where an item was read in list
 * order; an item found later stands half a place behind its left neighbour. Items of earlier passes keep lower numbers.
 */
export class Places {
  /** The place that the next item read in list order gets. */
  next = 1
  /** Distinct items of this pass. */
  distinct = 0
  #places = new Map<string, number>()
  /** Where the list has more items than were read in order (found later), or fewer (met again elsewhere). */
  #corrections: { at: number; by: number }[] = []
  #before = 0

  /** Distinct items of the walk. */
  get size(): number {
    return this.#places.size
  }

  /** The place of the first item that this pass read in list order. */
  get first(): number {
    return this.#before + 1
  }

  beginPass(): void {
    this.#before = this.next++
    this.#corrections = []
    this.distinct = 0
  }

  /** Whether any pass has seen the item. */
  has(id: string): boolean {
    return this.#places.has(id)
  }

  /** The item's place in this pass; undefined: none. */
  of(id: string | undefined): number | undefined {
    const place = id === undefined ? undefined : this.#places.get(id)
    return place === undefined || place < this.#before ? undefined : place
  }

  /** Notes that the walk has seen these items, wherever they belong. */
  see(ids: readonly string[]): void {
    for (const id of ids) if (!this.#places.has(id)) this.#places.set(id, NOWHERE)
  }

  /** Puts items behind all others, in list order. `isAgain`: those that have a place keep it. */
  append(ids: readonly string[], isAgain: boolean): void {
    for (const id of ids) {
      const before = this.of(id)
      if (before !== undefined && isAgain) continue
      if (before !== undefined) this.#corrections.push({ at: before, by: -1 })
      this.#put(id, this.next++)
    }
  }

  /**
   * Puts new items of a page that was asked for again behind their left neighbours; those before the first known one in front of it, and all
   * in front of the place `where` if none is known. Returns how many they are.
   */
  insert(ids: readonly string[], where: number): number {
    const known = this.of(ids.find((id) => this.of(id) !== undefined)) ?? where
    let left = Math.ceil(known) - 1
    let count = 0
    for (const id of ids) {
      const place = this.of(id)
      if (place !== undefined) left = Math.floor(place)
      else {
        this.#put(id, left + 0.5)
        this.#corrections.push({ at: left + 0.5, by: 1 })
        count++
      }
    }
    return count
  }

  #put(id: string, place: number): void {
    if (this.of(id) === undefined) this.distinct++
    this.#places.set(id, place)
  }

  isUpTo(id: string, { at }: Frontier): boolean {
    return (this.of(id) ?? Number.POSITIVE_INFINITY) <= at
  }

  /** Looks for the last item of a page that was read up to the frontier; null: there is none. */
  locate(ids: readonly string[], frontier: Frontier): Located | null {
    const read = [...ids.keys()].filter((at) => this.isUpTo(ids[at] ?? '', frontier))
    // An item that was moved is not where it was read: rather one whose neighbour is still beside it.
    const isBeside = (at: number) => areNeighbours(this.of(ids[at - 1]), this.of(ids[at]))
    const at = read.findLast(isBeside) ?? read.at(-1)
    const place = at === undefined ? undefined : this.of(ids[at])
    if (at === undefined || place === undefined) return null
    let gap = Math.floor(frontier.at) - Math.floor(place)
    for (const one of this.#corrections) if (one.at > place && one.at <= frontier.at) gap += one.by
    return { at, place, gap }
  }
}

/** Whether two items were read one behind the other. Items found later are neighbours of whatever they were found with. */
export function areNeighbours(left: number | undefined, right: number | undefined): boolean {
  return Number.isInteger(left) && Number(left) + 1 === right
}
