import { ratiosOf, type Spread, spreadOf } from './statistics.ts'

export type Unit = 'ms' | 'ms a page' | 'kB' | 'pages/s' | 'frames a page' | 'requests'

/** What one comparison measured; the figures of both by round. */
export interface Row {
  scenario: string
  what: string
  unit: Unit
  ours: readonly number[]
  /** The name of the other. */
  against: string
  others: readonly number[]
  /** What the figures alone do not tell. */
  note?: string
}

export interface Machine {
  processor: string
  cores: number
  memoryGb: number
  system: string
  /** Versions by name. */
  versions: Record<string, string>
}

/** Of the rounds. */
export function ratioOf({ ours, others }: Row): Spread {
  return spreadOf(ratiosOf(ours, others))
}

/** A row as scripts read it. */
export function summaryOf(row: Row): Row & { ratio: Spread } {
  return { ...row, ratio: ratioOf(row) }
}
