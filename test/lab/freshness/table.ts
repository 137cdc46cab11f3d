import type { Freshness } from './measure.ts'

/** What a policy came to. Ages in minutes, shares in percent. */
export interface FreshnessRow {
  policy: string
  newAge: { median: number; p95: number }
  changedAge: { median: number; p95: number; mean: number; within15: number; within60: number }
  wrongRows: number
  requestsPerDay: number
  refreshes: number
  untrue: number
}

type Summed = Pick<
  Freshness,
  'newAges' | 'changedAges' | 'wrongRows' | 'requestsPerDay' | 'refreshes' | 'untrue'
>

export function summarize(policy: string, freshness: Summed): FreshnessRow {
  const { newAges, changedAges, wrongRows, requestsPerDay, refreshes, untrue } = freshness
  const mean = changedAges.reduce((sum, age) => sum + age, 0) / Math.max(1, changedAges.length)
  const within15 = shareWithin(changedAges, 15)
  const within60 = shareWithin(changedAges, 60)
  const changedAge = { ...quantiles(changedAges), mean, within15, within60 }
  return { policy, newAge: quantiles(newAges), changedAge, wrongRows, requestsPerDay, refreshes, untrue }
}

function quantiles(ages: readonly number[]): { median: number; p95: number } {
  const sorted = ages.toSorted((a, b) => a - b)
  return {
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p95: sorted[Math.floor(sorted.length * 0.95)] ?? 0,
  }
}

function shareWithin(ages: readonly number[], minutes: number): number {
  return (100 * ages.filter((age) => age <= minutes).length) / Math.max(1, ages.length)
}

const HOUR = 60

export function ageText(minutes: number): string {
  if (minutes >= 10 * HOUR) return `${(minutes / HOUR).toFixed(0)} h`
  if (minutes >= 2 * HOUR) return `${(minutes / HOUR).toFixed(1)} h`
  return `${minutes.toFixed(minutes < 10 ? 1 : 0)} min`
}

export function wholeText(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
