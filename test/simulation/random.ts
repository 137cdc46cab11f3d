/** Chance that can be had again: the same seed gives the same draws. */
export interface Random {
  /** From 0 up to but not including 1. */
  next(): number
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number
  chance(probability: number): boolean
  /** One of those that there are. */
  pick<const T>(choices: readonly T[]): T
  /** A further source of its own, so that draws there do not shift those made here. */
  fork(): Random
}

/** Mulberry32, seeded through a mixing step so that neighbouring seeds have nothing in common. */
export function createRandom(seed: number): Random {
  let state = mix(seed)

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    return (mix(state) >>> 0) / 2 ** 32
  }

  function whole(least: number, most: number): number {
    return least + Math.floor(next() * (most - least + 1))
  }

  function pick<const T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error('there is nothing to pick from')
    return choices[whole(0, choices.length - 1)] as T
  }

  return {
    next,
    whole,
    chance: (probability) => next() < probability,
    pick,
    fork: () => createRandom(whole(0, 2 ** 31)),
  }
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return mixed ^ (mixed >>> 15)
}
