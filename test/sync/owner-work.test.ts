import { describe, expect, it } from 'vitest'
import { type OwnerWork, ownerName, workText } from '../../src/sync/owner-work.ts'

const WORK: OwnerWork = { isDaemon: false, isVerify: false, trigger: 'schedule' }

describe('the owner of a job', () => {
  it.each([
    ['worker-2-4711-0123456789ab', true, 'the scheduler of process 4711 on worker-2'],
    ['another process', false, 'another process'],
  ])('%s (a start: %s) is called %s', (name, isDaemon, expected) => {
    expect(ownerName(name, { ...WORK, isDaemon })).toBe(expected)
  })

  it.each<[string, OwnerWork | null]>([
    ['is working on it', WORK],
    ['is working on it (a backfill)', { ...WORK, trigger: 'backfill' }],
    ['is refreshing it', { ...WORK, trigger: 'refresh' }],
    ['is comparing it with the API (verify)', { ...WORK, isVerify: true, trigger: null }],
    ['is working on it', null],
  ])('%s', (expected, work) => {
    expect(workText(work)).toBe(expected)
  })
})
