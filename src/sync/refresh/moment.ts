import { isJsonObject, type JsonValue, ownField } from '../../json/value.ts'

/** A time as an API writes it. Times without a zone are taken for UTC: only their distances count. */
export interface Moment {
  /** Epoch milliseconds. */
  ms: number
  /** What the form leaves out, milliseconds. */
  unit: number
  /** Writes another time in the same form, rounded down. */
  write(ms: number): string
}

/** A day, or a minute, a second or a part of one in it. */
const TEXT = /^(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?)?$/

/** Seconds or milliseconds since 1970, of the years 2001 to 2286. */
const EPOCH = /^\d{10}(?:\d{3})?$/

/** Some APIs write a time such as 0001-01-01 for "no time". */
const EARLIEST = Date.UTC(1900)

/** Returns null for a value that is not a time. */
export function readMoment(value: JsonValue | undefined): Moment | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const text = String(value)
  if (EPOCH.test(text)) {
    const unit = text.length === 10 ? 1000 : 1
    return { ms: Number(text) * unit, unit, write: (ms) => String(Math.floor(ms / unit)) }
  }
  const [, day, between = '', minute, second = '', fraction = '', zone = ''] = TEXT.exec(text) ?? []
  const offset = offsetOf(zone)
  const ms =
    Date.parse(`${day}T${minute ?? '00:00'}${second || ':00'}.${fraction.slice(0, 3) || '0'}Z`) - offset
  if (!(ms >= EARLIEST)) return null
  return {
    ms,
    unit: minute === undefined ? 86_400_000 : second === '' ? 60_000 : fraction === '' ? 1000 : 1,
    write(at) {
      const iso = new Date(at + offset).toISOString()
      if (minute === undefined) return iso.slice(0, 10)
      const part = fraction && `.${iso.slice(20, 23).padEnd(fraction.length, '0').slice(0, fraction.length)}`
      return iso.slice(0, 10) + between + iso.slice(11, second ? 19 : 16) + part + zone
    },
  }
}

/** Milliseconds by which a zone is ahead of UTC. */
function offsetOf(zone: string): number {
  const [, sign, hours, minutes = 0] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes)) * 60_000
}

/** The time in a field of an item. @param path Dotted. */
export function momentIn(item: JsonValue, path: string): Moment | null {
  let value: JsonValue | undefined = item
  for (const name of path.split('.')) value = value && isJsonObject(value) ? ownField(value, name) : undefined
  return readMoment(value)
}
