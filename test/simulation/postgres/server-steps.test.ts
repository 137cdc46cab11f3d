import { expect, it } from 'vitest'
import { isOfBudgets } from './server-steps.ts'

it.each<[isOfBudgets: boolean, text: string]>([
  [true, 'UPDATE sync_gates SET known = $1'],
  [true, 'WITH one AS (SELECT 1) DELETE FROM sync_gates WHERE scope = $1'],
  [false, 'UPDATE sync_jobs SET owner = $1'],
  [false, 'WITH permit AS (UPDATE sync_gates SET known = $1) UPDATE "orders" SET id = $2'],
  [false, 'WITH permit AS (UPDATE sync_gates SET known = $1) INSERT INTO\n"orders" VALUES ($2)'],
  [false, 'WITH permit AS (UPDATE sync_gates SET known = $1) DELETE FROM mirror.orders'],
  [false, 'WITH permit AS (UPDATE sync_gates SET known = $1) MERGE INTO orders USING items'],
  [false, 'WITH one AS (SELECT 1) SELECT * FROM one'],
])('the oracle looks on unless a statement writes to budgets alone: %s, %s', (expected, text) => {
  expect(isOfBudgets(text)).toBe(expected)
})
