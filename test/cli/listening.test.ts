import { expect, it } from 'vitest'
import { createFaults, createSource } from '../../src/cli/listening.ts'
import type { Config } from '../../src/config/config.ts'
import { JobError, MirrorError } from '../../src/errors.ts'
import type { JobResult } from '../../src/sync/job.ts'

it('a mirror that a run could not use is unusable until a run could', async () => {
  const faults = createFaults()
  const source = createSource({
    served: {
      probe: async () => {},
      writeFault: () => null,
      facts: () => Promise.reject(new Error('not asked')),
    },
    config: () => ({ database: 'mirror.db', organizations: [] }) as unknown as Config,
    scheduler: { isTicking: () => true },
    fault: faults.last,
    now: () => 1_000_000,
  })
  const isUsable = async () => (await source.health()).unusable
  const RAN = {} as NonNullable<JobResult['run']>

  faults.note({ error: new MirrorError('the disk is full'), run: null })
  expect(await isUsable()).toBe('the disk is full')
  // It has not tried.
  faults.note({ error: new JobError('BUSY', 'elsewhere'), run: null })
  expect(await isUsable()).toBe('the disk is full')
  faults.note({ error: new JobError('NETWORK', 'away'), run: RAN })
  expect(await isUsable()).toBeNull()
})
