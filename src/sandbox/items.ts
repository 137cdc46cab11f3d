import { type OrderSource, orderLife } from './order-life.ts'
import {
  CITIES,
  createAddress,
  createDice,
  type Dice,
  FIRST_NAMES,
  hash,
  LAST_NAMES,
  NOTES,
  PRODUCTS,
  TAGS,
  timestamp,
  uuid,
  WORLD_START,
} from './words.ts'

const SALT = { order: 101, customer: 102, id: 103 }
const DISCOUNTS = [0, 0, 0, 1.1, 2.55, 20.0] as const

/** One order as the API lists it at a tick (see `OrderSource`). */
export function createOrder(source: OrderSource, index: number, tick: number): Record<string, unknown> {
  const dice = createDice(hash(source.key, SALT.order, index))
  const life = orderLife(source, index, tick)
  const items = createItems(dice)
  const subtotal = items.reduce((sum, item) => sum + Math.round(item.price * 100) * item.quantity, 0)
  const discount = Math.min(dice.pick(DISCOUNTS), subtotal / 100)
  const total = subtotal - Math.round(discount * 100)
  return {
    id: orderId(source, index),
    reference_number: createReference(dice, index),
    number: `ORD-${String(index + 1).padStart(6, '0')}`,
    state: life.state,
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
    customer: dice.chance(8) ? null : createCustomer(source, dice.below(500)),
    establishment_id:
      source.establishments === 0 ? null : establishmentId(source.key, dice.below(source.establishments)),
    items,
    tags: dice.chance(60) ? [] : TAGS.filter(() => dice.chance(40)),
    notes: dice.chance(80) ? null : dice.pick(NOTES),
    metadata: createMetadata(dice, life.touches),
    weight_grams: dice.chance(30) ? null : 100 + dice.below(5000),
    tracking_url: dice.chance(50) ? null : `https://track.example.com/parcels/${dice.digits(12)}`,
    created_at: timestamp(life.createdAt),
    updated_at: timestamp(life.updatedAt),
    delivered_at: life.deliveredAt === null ? null : timestamp(life.deliveredAt),
  }
}

/** Rises with the index, with gaps as in any shared table. */
function orderId(source: OrderSource, index: number): number {
  return 1000 + index * 3 + (hash(source.key, SALT.id, index) % 3)
}

interface Item {
  sku: string
  name: string
  quantity: number
  unit_price: string
  price: number
}

function createItems(dice: Dice): Item[] {
  return Array.from({ length: 1 + dice.below(5) }, () => {
    const { sku, name, cents } = dice.pick(PRODUCTS)
    return { sku, name, quantity: 1 + dice.below(4), unit_price: money(cents), price: cents / 100 }
  })
}

function createCustomer(source: OrderSource, number: number): Record<string, unknown> {
  const dice = createDice(hash(source.key, SALT.customer, number))
  const name = `${dice.pick(FIRST_NAMES)} ${dice.pick(LAST_NAMES)}`
  const address = createAddress(dice, dice.pick(CITIES))
  return { id: 20_000 + number, name, email: `customer${number}@example.com`, address }
}

/** A number of 19 or 20 digits: too many for a double, and some for 64 bits. The last eight make it unique. */
function createReference(dice: Dice, index: number): object {
  const random = dice.digits(10 + dice.below(2))
  return JSON.rawJSON(`${1 + dice.below(9)}${random}${String(index).padStart(8, '0')}`)
}

/** To PHP an empty map is an empty list, and it writes both as one. */
function createMetadata(dice: Dice, touches: number): Record<string, unknown> | [] {
  const campaign = dice.chance(30) ? { campaign: dice.pick(['spring', 'Fête', 'a/b']) } : {}
  const metadata = { ...campaign, ...(touches > 0 ? { checks: touches } : {}) }
  return Object.keys(metadata).length === 0 ? [] : metadata
}

function money(cents: number): string {
  return (cents / 100).toFixed(2)
}

const ESTABLISHMENT_SALT = { id: 201, establishment: 202, created: 203 }
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const
const SECONDS_BETWEEN = 6 * 3600

/** One establishment as the API lists it; `key` is the organization's. Establishments never change. */
export function createEstablishment(key: number, index: number): Record<string, unknown> {
  const dice = createDice(hash(key, ESTABLISHMENT_SALT.establishment, index))
  const city = dice.pick(CITIES)
  const created = timestamp(establishmentCreatedAt(key, index))
  return {
    id: establishmentId(key, index),
    code: String(index + 1).padStart(3, '0'),
    name: `${dice.pick(LAST_NAMES)} ${city.name}`,
    email: `shop${index + 1}@example.com`,
    phone: `+49 0351 ${dice.digits(6)}`,
    address: createAddress(dice, city),
    latitude: degrees(city.latitude, dice.below(1000)),
    longitude: degrees(city.longitude, dice.below(1000)),
    opening_hours: DAYS.slice(0, dice.below(DAYS.length + 1)).map((day) => ({
      day,
      opens: '08:30',
      closes: '18:00',
    })),
    active: dice.chance(90),
    created_at: created,
    updated_at: created,
  }
}

function establishmentId(key: number, index: number): string {
  return uuid(createDice(hash(key, ESTABLISHMENT_SALT.id, index)))
}

/** In epoch seconds; rises with the index. */
export function establishmentCreatedAt(key: number, index: number): number {
  return (
    WORLD_START + index * SECONDS_BETWEEN + (hash(key, ESTABLISHMENT_SALT.created, index) % SECONDS_BETWEEN)
  )
}

function degrees(center: number, offset: number): number {
  return Number((center + offset / 10_000).toFixed(4))
}
