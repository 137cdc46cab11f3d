import type { Random } from '../../simulation/random.ts'

/** A change that an item may go through: how likely, and so many minutes after it came, log-normal around the median. */
export interface Stage {
  chance: number
  minutes: number
  /** Of the logarithm. */
  spread: number
}

const HOUR = 60
const DAY = 24 * HOUR

/** How items change after they came. `apart`: so nearly at two ages that all else stands still. */
const LIVES: Record<string, readonly Stage[]> = {
  orders: [
    { chance: 0.9, minutes: 5, spread: 0.8 },
    { chance: 0.9, minutes: HOUR, spread: 0.8 },
    { chance: 0.9, minutes: DAY, spread: 0.8 },
    { chance: 0.9, minutes: 3 * DAY, spread: 0.8 },
    { chance: 0.15, minutes: 20 * DAY, spread: 1.5 },
  ],
  fast: [
    { chance: 1, minutes: 2, spread: 1 },
    { chance: 1, minutes: 20, spread: 1 },
  ],
  slow: [
    { chance: 1, minutes: 2 * DAY, spread: 1 },
    { chance: 1, minutes: 14 * DAY, spread: 1 },
    { chance: 1, minutes: 60 * DAY, spread: 1 },
  ],
  apart: [
    { chance: 1, minutes: 0.5 * HOUR, spread: 0.25 },
    { chance: 1, minutes: 10 * DAY, spread: 0.25 },
  ],
  busy: Array.from({ length: 20 }, () => ({ chance: 1, minutes: HOUR, spread: 1.5 })),
}

/** When an item that came at this minute changes, in minutes. */
export function changesOf(life: string, came: number, random: Random): number[] {
  const stages = LIVES[life]
  if (!stages) throw new Error(`there is no life ${life}; there are: ${Object.keys(LIVES).join(', ')}`)
  return stages
    .filter(({ chance }) => random.chance(chance))
    .map(({ minutes, spread }) => came + minutes * Math.exp(spread * normal(random)))
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
