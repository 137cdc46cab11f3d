import { expect, it } from 'vitest'
import { chooseWalk } from '../../src/sync/resume.ts'
import type { OpenWalk } from '../../src/sync/store.ts'
import type { WalkPlan } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { RULES, SYNC } from '../helpers/test-mirror.ts'

const NOW = 1_000_000_000
const JOB = jobOf({ filters: { state: 'paid', by: ['id', 'day'] } })

const BACKFILL: WalkPlan = { ...SYNC, origin: 'backfill', resumeWithin: null }
const PARTIAL: WalkPlan = { ...BACKFILL, kind: 'partial', firstPage: 5 }

function open(changed: Partial<OpenWalk> = {}): OpenWalk {
  return {
    id: 1,
    origin: 'sync',
    kind: 'full',
    path: JOB.collection.path,
    filters: '{"by":["id","day"],"state":"paid"}',
    firstPage: 1,
    rules: RULES,
    updatedAt: NOW - 1000,
    ...changed,
  }
}

const FULL_BACKFILL = open({ id: 2, origin: 'backfill' })
const PARTIAL_BACKFILL = open({ id: 3, origin: 'backfill', kind: 'partial', firstPage: 5 })
const ALL = [open(), FULL_BACKFILL, PARTIAL_BACKFILL]
const OLD = NOW - 86_400_001

it.each<[string, WalkPlan, OpenWalk[], number | null, number[]]>([
  ['one without progress for exactly resumeWithin', SYNC, [open({ updatedAt: OLD + 1 })], 1, []],
  ['none without progress for longer', SYNC, [open({ updatedAt: OLD })], null, [1]],
  ['none that another version began', SYNC, [open({ rules: { ...RULES, version: 0 } })], null, [1]],
  ['none with other filters', SYNC, [open({ filters: '{}' })], null, [1]],
  ['none of another path', SYNC, [open({ path: '/api/v2/orders' })], null, [1]],
  ['the latest of two, whatever the order of its filters', SYNC, [open(), open({ id: 4 })], 4, [1]],
  ['its own beside those of backfills', SYNC, ALL, 1, []],
  ['its own, however old', BACKFILL, [open(), open({ ...FULL_BACKFILL, updatedAt: 0 })], 2, []],
  ['a partial one, resumed', PARTIAL, ALL, 3, []],
  ['no full one of the same list', { ...PARTIAL, firstPage: 1 }, [FULL_BACKFILL], null, []],
  ['no partial one of another page', { ...PARTIAL, firstPage: 6 }, [PARTIAL_BACKFILL], null, []],
  ['none after --restart, which leaves the others alone', { ...PARTIAL, restart: true }, ALL, null, [3]],
])('the walk that a run resumes: %s', (_what, plan, known, resume, abandon) => {
  const choice = chooseWalk(known, plan, JOB, NOW)

  expect([choice.resume?.id ?? null, choice.abandon]).toEqual([resume, abandon])
})
