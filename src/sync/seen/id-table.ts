import { hash } from 'node:crypto'

/** Numbers distinct ids from 0 on. */
export interface IdTable {
  readonly size: number
  /** The id's number; undefined if it was not added. */
  find(id: string): number | undefined
  /** Returns the id's number; a new id gets the current size. */
  add(id: string): number
}

const CHUNK_BITS = 12
const CHUNK = 1 << CHUNK_BITS

/** An array of numbers, 0 at first. Grows by chunks, so nothing is ever copied. */
export class ChunkedArray {
  readonly #chunks: (Uint32Array | Float64Array)[] = []
  readonly #Chunk: Uint32ArrayConstructor | Float64ArrayConstructor

  constructor(Chunk: Uint32ArrayConstructor | Float64ArrayConstructor) {
    this.#Chunk = Chunk
  }

  get(index: number): number {
    return this.#chunks[index >>> CHUNK_BITS]?.[index & (CHUNK - 1)] ?? 0
  }

  set(index: number, value: number): void {
    const number = index >>> CHUNK_BITS
    while (this.#chunks.length <= number) this.#chunks.push(new this.#Chunk(CHUNK))
    const chunk = this.#chunks[number]
    if (chunk) chunk[index & (CHUNK - 1)] = value
  }
}

/** The initial number of slots. The table doubles when three of four are taken. */
const FEWEST_SLOTS = 1024

/**
 * A hash table without strings: it keeps 64 bits of each id's hash. Two ids with equal bits get the same number;
 * among a million ids the probability is 3 in 10^8.
 * @param salt Changes all hashes, so that the next walk does not meet the same collision.
 */
export function createIdTable(salt: number): IdTable {
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
    find(id) {
      const number = slots[slotOf(hashOf(salt, id))] ?? 0
      return number === 0 ? undefined : number - 1
    },
    add(id) {
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
