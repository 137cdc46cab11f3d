import { existsSync, readFileSync } from 'node:fs'

// The files by which the two runs of the tests and `mutation.ts` tell each other what they know, in the copy of the project.

export const REACHED = 'mutation.reached'
export const NOTICED = 'mutation.noticed'
/** The defect that is tried now, and how many milliseconds this may take; nothing between two tries. */
export const TRIED = 'mutation.tried'

/** How often the place of each defect is passed. */
export interface Hits {
  [defect: string]: number
}

/** What a test passes, or, without a title, what loading modules passes. */
export interface Reach {
  id: string
  file: string
  title: string | null
  ms: number
  passed: boolean
  hits: Hits
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
}

export function readReached(file = REACHED): Reach[] {
  return linesOf(file).map((line) => JSON.parse(line) as Reach)
}

export function readNoticed(file = NOTICED): Set<string> {
  return new Set(linesOf(file))
}
