import fs from 'node:fs'
import path from 'node:path'
import type { Measured } from './processes.ts'
import type { Row, Unit } from './table.ts'

export interface Bench {
  /** Orders of the longest list. */
  orders: number
  rounds: number
  /** `src/bin.js` of the checkouts to measure, by name; that of this one is `ours`. */
  programs: { ours: string; [name: string]: string }
  /** A folder for mirrors, which the caller removes. */
  folder: string
  report: (words: string) => void
}

export type Contenders<T = Measured> = Record<string, () => Promise<T>>

export function newFolder({ folder }: Bench): string {
  return fs.mkdtempSync(path.join(folder, 'contender-'))
}

/** Runs all contenders once a round, in turn, so that changes of the machine's speed affect all of them. */
export async function race<T = Measured>(
  { rounds, report }: Pick<Bench, 'rounds' | 'report'>,
  contenders: Contenders<T>,
): Promise<Record<string, T[]>> {
  const names = Object.keys(contenders)
  const results: Record<string, T[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    report(`  round ${round} of ${rounds}`)
    for (const [name, run] of Object.entries(contenders)) results[name]?.push(await run())
  }
  return results
}

/** A row for each contender but `ours`. */
export function rowsOf<T = Measured>(
  scenario: string,
  what: string,
  unit: Unit,
  { ours = [], ...others }: Record<string, T[]>,
  figureOf: (measured: T, name: string) => number,
): Row[] {
  return Object.entries(others).map(([against, measured]) => ({
    scenario,
    what,
    unit,
    ours: ours.map((one) => figureOf(one, 'ours')),
    against,
    theirs: measured.map((one) => figureOf(one, against)),
  }))
}

export function grouped(count: number): string {
  return count.toLocaleString('en')
}
