import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { RESTLESS } from '../helpers/in-process.ts'
import type { Reply } from '../helpers/list-server.ts'
import { stop } from '../helpers/processes.ts'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// That each setting of requests and walks reaches what it is for. What that makes of it: test/api, test/sync; the path of a list: address.test.ts.

it.for<[setting: string, reply: Reply, code: string, says: RegExp]>([
  ['api.timeout', { fault: () => {} }, 'TIMEOUT', /within api\.timeout \(150 ms\)/],
  ['api.maxResponseBytes', { body: ' '.repeat(1025) }, 'BAD_RESPONSE', /maxResponseBytes \(1024 bytes\)/],
  ['rateLimit.fallbackWait', { status: 429 }, 'RATE_LIMITED', /wait of 20 minutes .* \(18 minutes\)/],
  ['retry.attempts', { status: 500 }, 'SERVER_ERROR', /\(tried 2 times\)/],
])('%s is kept', async ([, reply, code, says], { scene: { workspace, server, api, configure } }) => {
  configure({
    api: { baseUrl: server.url, timeout: '150ms', maxResponseBytes: 1024 },
    rateLimit: { fallbackWait: '20m', maxWait: '18m' },
    retry: { attempts: 2, minDelay: '1ms', maxDelay: '1ms' },
  })
  api.instead = () => reply

  const { logs } = await workspace.run(['sync'])

  expect(logs.at(-1)).toMatchObject({ error_code: code, error_message: expect.stringMatching(says) })
})

it('concurrency and rateLimit.sharePercent are kept', async ({
  scene: { workspace, server, api, configure },
}) => {
  let [inFlight, most] = [0, 0]
  api.instead = async () => {
    most = Math.max(most, ++inFlight)
    await sleep(20)
    inFlight--
    return null
  }
  configure({ organizations: [ACME, GLOBEX], concurrency: 1 })
  await workspace.run(['sync'])
  expect(most).toBe(1)

  // A quarter of the four is one: all other requests wait for the next minute.
  server.asked.length = 0
  api.instead = () => ({ status: 500, headers: { 'x-ratelimit-limit': '4', 'x-ratelimit-remaining': '3' } })
  configure({ rateLimit: { sharePercent: 25 } })
  const sync = workspace.startHere(['sync'])
  await sync.log(({ event }) => event === 'waiting')
  await stop(sync)
  expect(server.asked).toHaveLength(1)
})

/** As SQL has it. */
const hoursAgo = (hours: number) => `'${new Date(Date.now() - hours * 3_600_000).toISOString()}'`

it('resumeWithin, maxPasses and keepRuns are kept', async ({
  scene: { workspace, server, api, configure },
}) => {
  const { run, rows, change } = workspace
  configure({ resumeWithin: '1h', maxPasses: 2, keepRuns: '1d' })
  api.instead = ({ page }) => (page === 2 ? { status: 403, body: {} } : null)
  await run(['sync'])
  change(`UPDATE sync_walks SET updated_at = ${hoursAgo(2)}`)
  server.asked.length = 0
  // It ends before its own total in each pass.
  api.instead = ({ page }) => ({
    body: { data: [{ id: page }], links: { next: page === 1 ? '?page=2' : null }, meta: { total: 7 } },
  })

  await run(['sync'])
  expect(server.asked[0]?.page).toBe(1)
  expect(rows('SELECT status, passes FROM sync_walks ORDER BY id')).toEqual([
    { status: 'abandoned', passes: 1 },
    { status: 'abandoned', passes: 2 },
  ])

  change(`UPDATE sync_runs SET started_at = ${hoursAgo(48)}`)
  api.instead = () => null
  await run(['sync'])
  expect(rows('SELECT status FROM sync_runs')).toEqual([{ status: 'succeeded' }])
})

const at = (time: string) => ({ clock: { ...RESTLESS, now: () => Date.parse(`2026-06-01T${time}:00Z`) } })

it('a start goes by timezone', async ({ scene: { workspace, configure } }) => {
  configure({ schedule: '0 0 * * *', timezone: 'Asia/Tokyo', refresh: false })
  await workspace.run(['sync'], at('14:00'))

  // In Tokyo the day has changed between.
  const start = workspace.startHere(['start'], at('16:00'))
  const { due } = await start.log(({ event }) => event === 'daemon_started')
  await stop(start)

  expect(due).toBe(1)
})
