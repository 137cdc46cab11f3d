/** The first moment of the made-up world, in epoch seconds. It is fixed, so that the data is the same on every day. */
export const WORLD_START = Date.UTC(2025, 0, 1) / 1000

// Most names have letters beyond ASCII, so that a first try of the mirror meets every mistake with them.
export const FIRST_NAMES = [
  'Zoë',
  'Łukasz',
  'José',
  'Søren',
  'Anaïs',
  'Jürgen',
  'Mia',
  'Noah',
  'Ελένη',
  '美咲',
] as const
export const LAST_NAMES = [
  'Müller',
  'Nowak',
  'Núñez',
  'Ågård',
  "O'Neill",
  'Çelik',
  'Smith',
  'Dvořák',
  '田中',
] as const
const STREETS = ['Hauptstraße', 'Rue de l’Église', 'Main Street', 'Calle Mayor', 'Østergade'] as const

export interface City {
  name: string
  country: string
  latitude: number
  longitude: number
}

export const CITIES: readonly [City, ...City[]] = [
  { name: 'Dresden', country: 'DE', latitude: 51.0504, longitude: 13.7373 },
  { name: 'Málaga', country: 'ES', latitude: 36.7213, longitude: -4.4213 },
  { name: 'Kraków', country: 'PL', latitude: 50.0647, longitude: 19.945 },
  { name: 'Boston', country: 'US', latitude: 42.3601, longitude: -71.0589 },
  { name: 'Århus', country: 'DK', latitude: 56.1629, longitude: 10.2039 },
]

export interface Product {
  sku: string
  name: string
  cents: number
}

export const PRODUCTS: readonly [Product, ...Product[]] = [
  { sku: 'TEA-001', name: 'Grüner Tee 100 g', cents: 640 },
  { sku: 'CUP-014', name: 'Espresso cup', cents: 1250 },
  { sku: 'POT-002', name: 'Teapot "Óbidos"', cents: 4590 },
  { sku: 'BOX-007', name: 'Gift box 20/30 cm', cents: 300 },
  { sku: 'CAF-100', name: 'Café moulu 1 kg', cents: 2199 },
]

export const NOTES = [
  'Bitte klingeln 🙂',
  'Leave at the back door.',
  'Fragile:\nhandle with care',
  'c/o Reception',
] as const
export const TAGS = ['vip', 'first-order', 'été', 'b2b', 'sale/summer'] as const

/** The nested address of a customer or an establishment. */
interface Address {
  street: string
  city: string
  /** Text: its leading zero matters. */
  zip: string
  country: string
}

export function createAddress(dice: Dice, city: City): Address {
  return {
    street: `${dice.pick(STREETS)} ${1 + dice.below(120)}`,
    city: city.name,
    zip: `0${dice.digits(4)}`,
    country: city.country,
  }
}

/** A moment (epoch seconds) as Eloquent writes it: UTC, with six digits of a second. */
export function timestamp(epochSeconds: number): string {
  return new Date(epochSeconds * 1000).toISOString().replace('.000Z', '.000000Z')
}

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
    pick: <T>(choices: readonly [T, ...T[]]) => choices[next() % choices.length] ?? choices[0],
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
