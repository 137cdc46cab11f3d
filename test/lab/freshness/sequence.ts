/** Numbers in an order, of which none is there twice. */
export interface Sequence {
  length(): number
  push(id: number): void
  insert(index: number, id: number): void
  /** Takes out what stands there; null where nothing does. */
  take(index: number): number | null
  drop(id: number): void
  slice(from: number, to: number): number[]
}

/** A block with more is split, so that whatever comes or goes moves few others. */
const MOST = 2048

export function createSequence(): Sequence {
  const blocks: number[][] = [[]]
  const blockOf = new Map<number, number[]>()
  let length = 0

  /** The block that holds this index, and the index within it; behind the end, the last block. */
  function find(index: number): { at: number; block: number[]; inside: number } {
    let inside = index
    let at = 0
    while (at < blocks.length - 1 && inside >= sizeAt(at)) inside -= sizeAt(at++)
    return { at, block: blocks[at] ?? [], inside }
  }

  function sizeAt(at: number): number {
    return blocks[at]?.length ?? 0
  }

  function push(id: number): void {
    if (sizeAt(blocks.length - 1) >= MOST) blocks.push([])
    put(blocks.at(-1) ?? [], id)
  }

  function put(block: number[], id: number, inside = block.length): void {
    block.splice(inside, 0, id)
    blockOf.set(id, block)
    length++
  }

  function insert(index: number, id: number): void {
    const { at, block, inside } = find(index)
    put(block, id, inside)
    if (block.length <= MOST) return
    const half = block.splice(MOST / 2)
    blocks.splice(at + 1, 0, half)
    for (const moved of half) blockOf.set(moved, half)
  }

  function takeOut(block: number[], inside: number): number | null {
    const [id] = block.splice(inside, 1)
    if (id === undefined) return null
    blockOf.delete(id)
    length--
    if (block.length === 0 && blocks.length > 1) blocks.splice(blocks.indexOf(block), 1)
    return id
  }

  return {
    length: () => length,
    insert,
    push,
    take(index) {
      const { block, inside } = find(index)
      return takeOut(block, inside)
    },
    drop(id) {
      const block = blockOf.get(id)
      if (block) takeOut(block, block.indexOf(id))
    },
    slice(from, to) {
      const { at: first, inside } = find(from)
      const found = (blocks[first] ?? []).slice(inside, inside + to - from)
      for (let at = first + 1; found.length < to - from && at < blocks.length; at++)
        found.push(...(blocks[at] ?? []).slice(0, to - from - found.length))
      return found
    },
  }
}
