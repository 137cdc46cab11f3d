/** The first moment of the made-up world, in epoch seconds. It is fixed, so that the data is the same on every day. */
export const WORLD_START = Date.UTC(2025, 0, 1) / 1000

/** A moment (epoch seconds) as Eloquent writes it: UTC, with six digits of a second. */
export function timestamp(epochSeconds: number): string {
  return new Date(epochSeconds * 1000).toISOString().replace('.000Z', '.000000Z')
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?$/

/** An ISO date or date with time as epoch seconds, UTC where it names no zone; null when it is none. */
export function parseMoment(text: string): number | null {
  const [, day, minutes = '00:00', seconds = ':00', fraction = '', zone = 'Z'] = ISO.exec(text) ?? []
  if (day === undefined) return null
  // Date.parse takes 30 February for 2 March.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return null
  const moment = Date.parse(`${day}T${minutes}${seconds}${zone}`) / 1000
  return Number.isNaN(moment) ? null : moment + Number(`0${fraction}`)
}
