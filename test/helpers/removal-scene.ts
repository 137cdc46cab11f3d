import { expect } from 'vitest'
import type { JobOptions, JobResult } from '../../src/sync/job.ts'
import type { Clock } from './clock.ts'
import { ACME } from './jobs.ts'
import { mirroredIds, runOnce } from './run-once.ts'
import { type Script, type ScriptedList, scriptedList, upTo } from './scripted-list.ts'
import { openTestMirror, SYNC, type TestMirror } from './test-mirror.ts'

export const HOUR = 3_600_000
export const ACCEPT: Partial<JobOptions> = { removals: { brakePercent: 20, brakeRows: 10, accept: true } }
export const BACKFILL = { ...SYNC, origin: 'backfill', resumeWithin: null } as const

export interface Scene {
  test: TestMirror
  list: ScriptedList
  /** A run over the list as it then stands, an hour after the last one; of these ids from now on, if any are given. */
  walk(ids?: readonly number[] | null, options?: Partial<JobOptions>): Promise<JobResult>
}

/** A mirror and a list of thirty items, three a page, or what is said instead. */
export function createScene(
  script: Partial<Script> = {},
  place: { file?: string; clock?: Clock } = {},
): Scene {
  const test = openTestMirror(place)
  const list = scriptedList({ ids: upTo(30), ...script })
  return {
    test,
    list,
    walk(ids, options) {
      if (ids) list.ids = [...ids]
      test.clock.advance(HOUR)
      return runOnce(test, list, options)
    },
  }
}

export function without(ids: readonly number[], ...gone: number[]): number[] {
  return ids.filter((id) => !gone.includes(id))
}

/** The ids that stand in the history, with why they went. */
export function history({ rows }: TestMirror) {
  return rows('SELECT id, _reason FROM orders_history ORDER BY id, _valid_to').map(({ id, _reason }) => [
    id,
    _reason,
  ])
}

/** What is held back, by the counter and by the lines; both say the same. */
export function held({ value }: TestMirror): unknown {
  const counted = value('SELECT removals_held FROM sync_status WHERE organization_id = ?', ACME.id)
  expect(value(`SELECT count(*) FROM sync_missing WHERE state = 'held'`)).toBe(counted)
  return counted
}

/** That the counter of rows, and both tables, say the same. */
export function expectRows({ test }: Scene, ids: readonly number[]): void {
  expect(mirroredIds(test)).toEqual(ids)
  expect(test.value('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toBe(ids.length)
  expect(test.rows('SELECT id FROM orders_raw ORDER BY id').map(({ id }) => id)).toEqual(ids)
}
