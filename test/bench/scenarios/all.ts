import type { Scenario } from '../bench.ts'
import { budget } from './budget.ts'
import { distant } from './distant.ts'
import { firstSync } from './first-sync.ts'
import { idle } from './idle.ts'
import { manyJobs } from './many-jobs.ts'
import { memory } from './memory.ts'
import { queries } from './queries.ts'
import { start } from './start.ts'
import { unchanged } from './unchanged.ts'

/** In the order of the table. */
export const SCENARIOS: readonly Scenario[] = [
  firstSync,
  distant,
  unchanged,
  memory,
  manyJobs,
  idle,
  start,
  queries,
  budget,
]
