import { describe, expect, it } from 'vitest'
import { chooseWalk, filtersText } from '../../src/sync/resume.ts'
import type { OpenWalk } from '../../src/sync/store.ts'
import type { Filters, WalkPlan } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { RULES, SYNC } from '../helpers/test-mirror.ts'

const NOW = 1_000_000_000
const JOB = jobOf({ filters: { state: 'paid' } })

const BACKFILL: WalkPlan = { ...SYNC, origin: 'backfill', resumeWithin: null }
const PARTIAL: WalkPlan = { ...BACKFILL, kind: 'partial', firstPage: 5 }

function open(changed: Partial<OpenWalk> = {}): OpenWalk {
  return {
    id: 1,
    origin: 'sync',
    kind: 'full',
    path: JOB.collection.path,
    filters: '{"state":"paid"}',
    firstPage: 1,
    rules: RULES,
    updatedAt: NOW - 1000,
    ...changed,
  }
}

const FULL_BACKFILL = open({ id: 2, origin: 'backfill' })
const PARTIAL_BACKFILL = open({ id: 3, origin: 'backfill', kind: 'partial', firstPage: 5 })
const OTHER_PART = open({ ...PARTIAL_BACKFILL, filters: '{"state":"open"}' })
const ALL = [open(), FULL_BACKFILL, PARTIAL_BACKFILL]
const OLD = NOW - 86_400_001

describe('the walk that a run resumes', () => {
  it.each<[string, WalkPlan, OpenWalk[], number | null, number[]]>([
    ['none is open', SYNC, [], null, []],
    ["the sync's own", SYNC, [open()], 1, []],
    ['one without progress for exactly resumeWithin', SYNC, [open({ updatedAt: OLD + 1 })], 1, []],
    ['none without progress for longer', SYNC, [open({ updatedAt: OLD })], null, [1]],
    ['none that another version began', SYNC, [open({ rules: { ...RULES, version: 0 } })], null, [1]],
    ['none with other filters', SYNC, [open({ filters: '{}' })], null, [1]],
    ['none of another path', SYNC, [open({ path: '/api/v2/orders' })], null, [1]],
    ['the latest of two', SYNC, [open(), open({ id: 4 })], 4, [1]],
    ['none of a backfill', SYNC, [FULL_BACKFILL, PARTIAL_BACKFILL], null, []],
    ['its own beside those of backfills', SYNC, ALL, 1, []],
    ['a new full backfill', BACKFILL, [open()], null, []],
    ['a full backfill, resumed', BACKFILL, [open(), FULL_BACKFILL], 2, []],
    ['a full backfill, however old', BACKFILL, [open({ ...FULL_BACKFILL, updatedAt: 0 })], 2, []],
    ['a full backfill leaves another backfill alone', BACKFILL, [PARTIAL_BACKFILL], null, []],
    ['a partial one leaves the sync alone', PARTIAL, [open()], null, []],
    ['a partial one, resumed', PARTIAL, ALL, 3, []],
    ['no full one of the same list', { ...PARTIAL, firstPage: 1 }, [FULL_BACKFILL], null, []],
    ['no partial one of another page', { ...PARTIAL, firstPage: 6 }, [PARTIAL_BACKFILL], null, []],
    ['none of other filters', PARTIAL, [OTHER_PART], null, []],
    ['none after --restart', { ...BACKFILL, restart: true }, [FULL_BACKFILL], null, [2]],
    ['none after --restart, which leaves the others alone', { ...PARTIAL, restart: true }, ALL, null, [3]],
  ])('%s', (_what, plan, known, resume, abandon) => {
    const choice = chooseWalk(known, plan, JOB, NOW)

    expect([choice.resume?.id ?? null, choice.abandon]).toEqual([resume, abandon])
  })
})

describe('the text of filters', () => {
  it.each<[string, Filters, Filters, boolean]>([
    ['in another order', { a: '1', b: '2' }, { b: '2', a: '1' }, true],
    ['with another value', { a: '1' }, { a: '2' }, false],
    ['with a list', { a: ['1', '2'] }, { a: ['1', '2'] }, true],
  ])('is the same for the same list, and no other: %s', (_what, one, other, same) => {
    expect(filtersText(one) === filtersText(other)).toBe(same)
  })
})
