import { crc32 } from 'node:zlib'

// The items of the made-up API. All of one follows from the name of its organization and its index, so that it is the same on every day.

/** The first moment of the made-up world, in epoch seconds. */
const WORLD_START = Date.UTC(2025, 0, 1) / 1000

/** Between two orders; each comes somewhere within its time. Seconds. */
const ORDER_EVERY = 600

// Most names have letters beyond ASCII, so that a first try of the mirror meets every mistake with them.
const FIRST_NAMES = 'Zoë Łukasz José Søren Anaïs Jürgen Mia Noah Ελένη 美咲'.split(' ')
const LAST_NAMES = "Müller Nowak Núñez Ågård O'Neill Çelik Smith Dvořák 田中".split(' ')
const STREETS = ['Hauptstraße', 'Rue de l’Église', 'Main Street', 'Calle Mayor', 'Østergade']
const CITIES = [
  { name: 'Dresden', country: 'DE' },
  { name: 'Málaga', country: 'ES' },
  { name: 'Kraków', country: 'PL' },
  { name: 'Boston', country: 'US' },
  { name: 'Århus', country: 'DK' },
]
const PRODUCTS = [
  { sku: 'TEA-001', name: 'Grüner Tee 100 g', cents: 640 },
  { sku: 'CUP-014', name: 'Espresso cup', cents: 1250 },
  { sku: 'POT-002', name: 'Teapot "Óbidos"', cents: 4590 },
  { sku: 'BOX-007', name: 'Gift box 20/30 cm', cents: 300 },
  { sku: 'CAF-100', name: 'Café moulu 1 kg', cents: 2199 },
]
const TAGS = ['vip', 'first-order', 'été', 'b2b', 'sale/summer']
const DISCOUNTS = [0, 0, 0, 1.1, 2.55, 20.0]
const STATES = 'pending paid paid shipped shipped delivered delivered delivered delivered cancelled'.split(
  ' ',
)
const HOUR = 3600

/** An order as the API lists it. */
export function createOrder(organization: string, index: number, shops: number) {
  const dice = createDice(`${organization} order ${index}`)
  const created = WORLD_START + index * ORDER_EVERY + dice.below(ORDER_EVERY)
  const state = orderState(organization, index)
  const updated = created + (state === 'pending' ? 0 : dice.below(48 * HOUR))
  const items = Array.from({ length: 1 + dice.below(5) }, () => createLine(dice))
  const subtotal = items.reduce((sum, item) => sum + Math.round(item.price * 100) * item.quantity, 0)
  const discount = Math.min(dice.pick(DISCOUNTS), subtotal / 100)
  const total = subtotal - Math.round(discount * 100)
  return {
    // Rises with the index, with gaps as in any shared table.
    id: 1000 + index * 3 + dice.below(3),
    reference_number: createReference(dice, index),
    number: `ORD-${String(index + 1).padStart(6, '0')}`,
    state,
    channel: dice.pick(['web', 'app', 'phone']),
    currency: dice.pick(['EUR', 'EUR', 'USD', 'PLN']),
    subtotal: money(subtotal),
    discount,
    tax_rate: dice.pick([0.07, 0.19, 0.2, 0.255]),
    total: money(total),
    total_cents: total,
    payment_method: dice.chance(20) ? null : dice.pick(['card', 'invoice', 'cash']),
    locale: dice.pick(['de_DE', 'es_ES', 'pl_PL', 'en_US']),
    is_gift: dice.chance(10),
    customer: dice.chance(8) ? null : createCustomer(organization, dice.below(500)),
    establishment_id: shops === 0 ? null : shopId(organization, dice.below(shops)),
    items,
    tags: dice.chance(60) ? [] : TAGS.filter(() => dice.chance(40)),
    created_at: timestamp(created),
    updated_at: timestamp(updated),
    delivered_at: state === 'delivered' ? timestamp(updated) : null,
  }
}

/** A number of 19 or 20 digits: too many for a double, and some for 64 bits. The last eight make it unique. */
function createReference(dice: Dice, index: number): object {
  const random = dice.digits(10 + dice.below(2))
  return JSON.rawJSON(`${1 + dice.below(9)}${random}${String(index).padStart(8, '0')}`)
}

export function orderState(organization: string, index: number): string {
  return createDice(`${organization} state ${index}`).pick(STATES)
}

function createLine(dice: Dice) {
  const { sku, name, cents } = dice.pick(PRODUCTS)
  return { sku, name, quantity: 1 + dice.below(4), unit_price: money(cents), price: cents / 100 }
}

function createCustomer(organization: string, number: number) {
  const dice = createDice(`${organization} customer ${number}`)
  const name = `${dice.pick(FIRST_NAMES)} ${dice.pick(LAST_NAMES)}`
  const address = createAddress(dice, dice.pick(CITIES))
  return { id: 20_000 + number, name, email: `customer${number}@example.com`, address }
}

/** An establishment as the API lists it. They never change. */
export function createEstablishment(organization: string, index: number) {
  const dice = createDice(`${organization} shop ${index}`)
  const city = dice.pick(CITIES)
  const created = WORLD_START + index * 6 * HOUR + dice.below(6 * HOUR)
  return {
    id: shopId(organization, index),
    code: String(index + 1).padStart(3, '0'),
    name: `${dice.pick(LAST_NAMES)} ${city.name}`,
    email: `shop${index + 1}@example.com`,
    address: createAddress(dice, city),
    active: dice.chance(90),
    created_at: timestamp(created),
    updated_at: timestamp(created),
  }
}

function shopId(organization: string, index: number): string {
  return uuid(createDice(`${organization} shop id ${index}`))
}

/** The leading zero of `zip` matters. */
function createAddress(dice: Dice, { name: city, country }: (typeof CITIES)[number]) {
  return {
    street: `${dice.pick(STREETS)} ${1 + dice.below(120)}`,
    city,
    zip: `0${dice.digits(4)}`,
    country,
  }
}

function money(cents: number): string {
  return (cents / 100).toFixed(2)
}

/** A moment (epoch seconds) as Eloquent writes it: UTC, with six digits of a second. */
function timestamp(epochSeconds: number): string {
  return new Date(epochSeconds * 1000).toISOString().replace('.000Z', '.000000Z')
}

type Dice = ReturnType<typeof createDice>

/** Numbers that look random and follow from `seed` alone, on every machine. */
export function createDice(seed: string) {
  let state = crc32(seed)
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
export function uuid({ digits }: Dice): string {
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`
}

// MurmurHash3's last step: it maps neighbouring numbers far apart.
function mix(value: number): number {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
