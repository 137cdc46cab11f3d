import process from 'node:process'
import type { FreshList } from '../planted-bug.ts'
import { measureFreshness } from './measure.ts'
import { SETTING } from './measure-policies.ts'
import { policyNamed } from './policies.ts'
import { type FreshnessRow, summarize } from './table.ts'

export type Refreshed = FreshnessRow

/** Small enough for a test. */
const SMALL = { ...SETTING, rows: 5000, days: 2 }

/** Reads the list of its command line. */
const { policy, ...list } = JSON.parse(process.argv[2] ?? '') as FreshList
const freshness = measureFreshness(policyNamed(policy), { ...SMALL, ...list }, 1)
const row: Refreshed = summarize(policy, freshness)
process.stdout.write(JSON.stringify(row))
