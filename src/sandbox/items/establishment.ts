import { createDice, hash, uuid } from '../random.ts'
import { CITIES, createAddress, LAST_NAMES, timestamp, WORLD_START } from './words.ts'

const SALT = { id: 201, establishment: 202, created: 203 }
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const
const SECONDS_BETWEEN = 6 * 3600

/** One establishment as the API lists it; `key` is the organization's. Establishments never change. */
export function createEstablishment(key: number, index: number): Record<string, unknown> {
  const dice = createDice(hash(key, SALT.establishment, index))
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

export function establishmentId(key: number, index: number): string {
  return uuid(createDice(hash(key, SALT.id, index)))
}

/** In epoch seconds; rises with the index. */
export function establishmentCreatedAt(key: number, index: number): number {
  return WORLD_START + index * SECONDS_BETWEEN + (hash(key, SALT.created, index) % SECONDS_BETWEEN)
}

function degrees(center: number, offset: number): number {
  return Number((center + offset / 10_000).toFixed(4))
}
