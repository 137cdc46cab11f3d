import { expect, it } from 'vitest'
import { JobError, type KnownError } from '../../src/errors.ts'
import { createPings } from '../../src/ping/pings.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'

const HELD = new JobError('UNAUTHORIZED', 'refused')
const OTHER = new JobError('BAD_RESPONSE', 'no list')

function resultOf(error: KnownError | null): JobResult {
  const outcome = { coverage: null, expectedMissed: null, untrusted: null, heldBack: null }
  return {
    job: jobOf(),
    trigger: 'schedule',
    walk: null,
    run: null,
    isInstead: false,
    items: 0,
    error,
    ...outcome,
  }
}

const COUNTS = { pages: 1, rowsSeen: 25, rowsAdded: 0, rowsChanged: 0, rowsRemoved: 0 }
const TRAFFIC = { requests: 1, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }

/** A refresh that has read a page. */
const REFRESHED: JobResult = {
  ...resultOf(null),
  trigger: 'refresh',
  isInstead: true,
  run: { ...COUNTS, ...TRAFFIC },
}

/** `isLost`: no ping arrives, until `scene.arrive()`. */
function createScene(tokenOf = (_organization: string) => 'one', isLost = false) {
  const sent: string[] = []
  const texts: string[] = []
  let isAway = isLost
  const pings = createPings({
    addressOf: () => 'all',
    tokenOf,
    send: async (_, kind, text) => {
      sent.push(kind)
      texts.push(text)
      if (isAway) throw new Error('status 500')
    },
    onLost: () => {},
    onSent: () => {},
    sleep: () => (isLost ? Promise.resolve() : new Promise(() => {})),
    signal: new AbortController().signal,
    now: () => 0,
  })
  const arrive = () => {
    isAway = false
  }
  return { sent, texts, pings, arrive }
}

/** The refresh of a list of that organization. */
function refreshOf(name: string, error: KnownError | null = null): JobResult {
  return { ...REFRESHED, job: { ...jobOf(), organization: { id: name, name } }, error }
}

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

async function failOneAfterAnother(
  { pings }: Pick<ReturnType<typeof createScene>, 'pings'>,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    pings.note([refreshOf(name, HELD)])
    await pings.idle()
  }
}

it('many lists that meet one refused token make one call, and a call for another reason names them all', async () => {
  const scene = createScene()
  await failOneAfterAnother(scene, ['acme', 'globex', 'initech'])
  expect(scene.sent).toEqual(['fail'])

  scene.pings.note([refreshOf('hooli', OTHER)])
  await scene.pings.idle()
  expect(scene.sent).toEqual(['fail', 'fail'])
  expect(scene.texts.at(-1)).toContain('4 lists failed:')
})

it('a call that did not arrive is made again for the next list', async () => {
  const scene = createScene(undefined, true)
  await failOneAfterAnother(scene, ['acme', 'globex'])
  // Three tries each.
  expect(scene.sent).toHaveLength(6)
})

it('a call that did not arrive is made again once, though every list has met the token before', async () => {
  const scene = createScene(undefined, true)
  const names = ['acme', 'globex', 'initech']
  for (const name of names) scene.pings.note([refreshOf(name, HELD)])
  await scene.pings.idle()
  scene.arrive()
  scene.sent.length = 0
  await failOneAfterAnother(scene, names)
  await failOneAfterAnother(scene, names)

  expect(scene.sent).toEqual(['fail'])
  expect(scene.texts.at(-1)).toContain('3 lists failed:')
})

it('what an earlier process left is one call with what refreshes meet', async () => {
  const { sent, pings } = createScene()
  const left = { organizationId: 'acme', organization: 'acme', collection: 'orders', code: 'UNAUTHORIZED' }
  pings.recall([{ ...left, waitsForSomebody: true, endsByRefresh: true }])
  await pings.idle()
  pings.note([refreshOf('globex', HELD)])
  await pings.idle()
  expect(sent).toEqual(['fail'])
})
