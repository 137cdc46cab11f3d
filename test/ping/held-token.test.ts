import { expect, it } from 'vitest'
import { JobError, type KnownError } from '../../src/errors.ts'
import { createPings } from '../../src/ping/pings.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'

const HELD = new JobError('UNAUTHORIZED', 'refused')
const OTHER = new JobError('BAD_RESPONSE', 'no list')

function resultOf(error: KnownError | null): JobResult {
  const outcome = { coverage: null, expectedMissed: null, untrusted: null, heldBack: null }
  return { job: jobOf(), trigger: 'schedule', walk: null, run: null, isRefreshed: false, error, ...outcome }
}

const COUNTS = { pages: 1, rowsSeen: 25, rowsAdded: 0, rowsChanged: 0, rowsRemoved: 0 }
const TRAFFIC = { requests: 1, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }

/** A refresh that has read a page. */
const REFRESHED: JobResult = {
  ...resultOf(null),
  trigger: 'refresh',
  isRefreshed: true,
  run: { ...COUNTS, ...TRAFFIC },
}

function createScene() {
  const sent: string[] = []
  const pings = createPings({
    addressOf: () => 'all',
    send: async (_, kind) => void sent.push(kind),
    onLost: () => {},
    onSent: () => {},
    sleep: () => new Promise(() => {}),
    signal: new AbortController().signal,
    now: () => 0,
  })
  return { sent, pings }
}

it.each<[string, KnownError[], string[]]>([
  ['ends the failure of a schedule', [HELD], ['success']],
  ['ends it, however often a schedule met it', [HELD, HELD], ['success']],
  ['does not hide that a walk failed before', [OTHER, HELD], []],
])('a refresh whose token is accepted again %s', async (_, failures, expected) => {
  const { sent, pings } = createScene()
  for (const failure of failures) await pings.around([jobOf()], async () => [resultOf(failure)])
  await pings.idle()
  sent.length = 0
  pings.note([REFRESHED])
  await pings.idle()

  expect(sent).toEqual(expected)
})

it('a refresh whose token is accepted again ends what an earlier process left, and the first run met', async () => {
  const { sent, pings } = createScene()
  const { organization, collection } = jobOf()
  const job = {
    organizationId: organization.id,
    organization: organization.name,
    collection: collection.name,
  }
  pings.recall([{ ...job, code: 'UNAUTHORIZED', waitsForSomebody: true, endsByRefresh: true }])
  await pings.around([jobOf()], async () => [resultOf(HELD)])
  pings.note([REFRESHED])
  await pings.idle()

  expect(sent.at(-1)).toBe('success')
})

it('lists that are well again one after another are told of once all are', async () => {
  const { sent, pings } = createScene()
  const jobs = ['acme', 'globex', 'initech'].map((name) => ({ ...jobOf(), organization: { id: name, name } }))
  for (const job of jobs) pings.note([{ ...REFRESHED, job, error: HELD }])
  await pings.idle()
  sent.length = 0
  for (const job of jobs) {
    pings.note([{ ...REFRESHED, job }])
    await pings.idle()
  }

  expect(sent).toEqual(['success'])
})
