/** The last item of a page that was read up to some place. */
export interface Located {
  /** Its position on the page, and its place. */
  at: number
  place: number
  /** How many items follow it, up to that place. */
  gap: number
}

/** An item that was seen, and has no place. */
const NOWHERE = -1

/**
 * The items that a walk has seen, and in which order its present pass read them. A place is a whole number where an item was read in list
 * order; an item found later stands half a place behind its left neighbour. Items of earlier passes keep lower numbers.
 */
export class Places {
  /** The place that the next item read in list order gets, and the first such place of this pass. */
  next = 1
  first = 1
  /** Distinct items of this pass. */
  distinct = 0
  #places = new Map<string, number>()
  /** Where the list has more items than were read in order (found later), or fewer (met again elsewhere). */
  #corrections: { at: number; by: number }[] = []

  /** Distinct items of the walk. */
  get size(): number {
    return this.#places.size
  }

  beginPass(): void {
    // A gap, so that nothing of this pass is a neighbour of an item of the one before.
    this.first = ++this.next
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
    // What was found in front of the first item stands up to one place before it.
    return place === undefined || place < this.first - 1 ? undefined : place
  }

  isUpTo(id: string, last: number): boolean {
    return (this.of(id) ?? Number.POSITIVE_INFINITY) <= last
  }

  /** Notes that the walk has seen these items, wherever they belong. */
  see(ids: readonly string[]): void {
    for (const id of ids) if (!this.#places.has(id)) this.#places.set(id, NOWHERE)
  }

  /** Puts items behind all others, in list order. */
  append(ids: readonly string[]): void {
    for (const id of ids) {
      const before = this.of(id)
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

  /** Looks for the last item of a page that was read up to this place; null: there is none. */
  locate(ids: readonly string[], last: number): Located | null {
    const read = [...ids.keys()].filter((at) => this.isUpTo(ids[at] ?? '', last))
    // An item that was moved is not where it was read: rather one whose neighbour is still beside it.
    const at = read.findLast((one) => this.areNeighbours(ids[one - 1], ids[one])) ?? read.at(-1)
    const place = at === undefined ? undefined : this.of(ids[at])
    if (at === undefined || place === undefined) return null
    let gap = Math.floor(last) - Math.floor(place)
    for (const one of this.#corrections) if (one.at > place && one.at <= last) gap += one.by
    return { at, place, gap }
  }

  /** Whether two items were read one behind the other. Items found later are neighbours of whatever they were found with. */
  areNeighbours(left: string | undefined, right: string | undefined): boolean {
    const [one, other] = [this.of(left), this.of(right)]
    return one !== undefined && Number.isInteger(one) && one + 1 === other
  }
}
