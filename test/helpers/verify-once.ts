import type { PageSource } from '../../src/sync/types.ts'
import { type VerifyOptions, type VerifyResult, verifyJob } from '../../src/sync/verify.ts'
import { jobOf } from './jobs.ts'
import type { TestMirror } from './test-mirror.ts'

/** Verifies the orders of acme by hand, or what is said instead. */
export function verifyOnce(
  { store, clock }: TestMirror,
  { source }: { source: PageSource },
  changed: Partial<VerifyOptions> = {},
): Promise<VerifyResult> {
  const { now, sleep } = clock
  const { signal } = new AbortController()
  return verifyJob({
    job: jobOf(),
    source: async () => source,
    store,
    maxPasses: 3,
    waitForOwner: false,
    now,
    sleep,
    yieldToEventLoop: async () => {},
    observe: () => {},
    signal,
    ...changed,
  })
}

/** `missing 7`, `different 3 state`: all that is told of a verification, sorted. */
export function told({ differences, error }: VerifyResult): string[] {
  if (!differences) return [`${error?.code}: ${error?.message}`]
  const lines = differences.listed.map(({ kind, key, paths, reject }) =>
    [kind, key ?? reject, ...paths].join(' '),
  )
  return lines.toSorted()
}
