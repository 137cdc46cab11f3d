export type Dice = ReturnType<typeof createDice>

/** Mixes whole numbers into one of 32 bits. Order matters, and every machine gets the same result. */
export function hash(...parts: number[]): number {
  let state = 0x9e3779b9
  for (const part of parts) state = mix(state ^ mix(part))
  return state
}

/** Numbers that look random and follow from `key` alone. */
export function createDice(key: number) {
  let state = key
  function next(): number {
    state = (state + 0x9e3779b9) | 0
    return mix(state)
  }
  return {
    /** A whole number from 0 to `limit` - 1. */
    below: (limit: number) => next() % limit,
    chance: (percent: number) => next() % 100 < percent,
    pick: <T>(choices: readonly T[]) => choices[next() % choices.length] as T,
    /** Text of `length` decimal digits, leading zeros included. */
    digits: (length: number) => {
      let text = ''
      // The last nine digits of a 32-bit number are as good as random.
      while (text.length < length) text += String(next() % 1e9).padStart(9, '0')
      return text.slice(0, length)
    },
  }
}

/** A UUID in the form of version 4. */
export function uuid(dice: Dice): string {
  const hex = (length: number) =>
    dice
      .below(16 ** length)
      .toString(16)
      .padStart(length, '0')
  return `${hex(4)}${hex(4)}-${hex(4)}-4${hex(3)}-${dice.pick(['8', '9', 'a', 'b'])}${hex(3)}-${hex(6)}${hex(6)}`
}

// MurmurHash3's last step: it maps neighbouring numbers far apart.
function mix(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
