import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { startPostgres } from '../../helpers/postgres.ts'
import { type SharedList, startSharedApi } from './shared-api.ts'

// Two workers keep 20 lists of one token fresh: one with three new orders a minute, 19 with one an hour. How fast the machine is decides
// nothing: the lists wait for the limit, and the bounds are minutes.

const MINUTES = Number(process.env.LIVE_MINUTES ?? '20')
const MINUTE = 60_000

/** How often rows come to each list is learned meanwhile: from the third reading on the busy one is read in time. */
const SETTLES = 10

const LIMIT = 60
/** What refreshes may send: a tenth, and what may begin at once. */
const most = (minutes: number) => (LIMIT / 10) * minutes + 11

const KINDS = [
  { organizations: 1, orders: 10_000, speed: 1 },
  { organizations: 19, orders: 3000, speed: 1 / 180 },
]
/** Within so many minutes new orders show, by `speed`. */
const within = ({ speed }: Pick<SharedList, 'speed'>) => (speed === 1 ? 6 : 30)

const server = await startPostgres()
afterAll(() => server.stop())
if (server.missing !== null) console.warn(server.missing)

it.skipIf(server.missing !== null)(
  `refreshes of 20 lists by two workers show new orders in time, for a tenth of the limit, in ${MINUTES} minutes`,
  async () => {
    const api = await startSharedApi(KINDS, LIMIT)
    const mirror = onPostgres(server, api.url, {
      organizations: api.lists.map(({ id, name }) => ({ id, name, token: api.token })),
      // Nothing is walked meanwhile: all requests are those of refreshes.
      schedule: '0 0 1 1 *',
      refresh: { every: '5m', share: 10 },
    })
    const { code } = await mirror.run(['sync'])

    api.begin()
    const beganAt = Date.now()
    const workers = [mirror.start(['start']), mirror.start(['start'])]
    await sleep(MINUTES * MINUTE)
    const livedMs = Date.now() - beganAt
    for (const worker of workers) worker.killAll('SIGTERM')
    const codes = (await Promise.all(workers.map(({ ended }) => ended))).map((ended) => ended.code)
    const rows = await mirror.rows()
    const seen = await rows(
      'SELECT _organization_id AS organization, number, extract(epoch FROM _first_seen_at) * 1000 AS at FROM orders',
    )
    await api.close()

    const seenAt = new Map(
      seen.map(({ organization, number, at }) => [
        `${String(organization)} ${String(number)}`,
        Number(at) - beganAt,
      ]),
    )
    const ages = api.lists.flatMap((list) =>
      [...list.appeared(livedMs)].map(([number, appearedAt]) => {
        const at = seenAt.get(`${list.id} ${number}`) ?? null
        const minutes = ((at ?? livedMs) - appearedAt) / MINUTE
        return { speed: list.speed, isSeen: at !== null, appearedAt, minutes }
      }),
    )
    say(ages, api.requests)
    expect([code, ...codes]).toEqual([0, 0, 0])
    expect(ages.filter(({ isSeen, speed }) => isSeen && speed === 1).length).toBeGreaterThan(MINUTES)
    const settled = ages.filter(({ appearedAt }) => appearedAt >= SETTLES * MINUTE)
    expect(settled.filter((age) => age.minutes > within(age))).toEqual([])
    for (const minutes of [5, 20, 60])
      expect(mostIn(api.requests, minutes * MINUTE)).toBeLessThanOrEqual(most(minutes))
  },
  (MINUTES + 20) * MINUTE,
)

function mostIn(times: readonly number[], spanMs: number): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + spanMs).length))
}

function say(
  ages: readonly { speed: number; isSeen: boolean; minutes: number }[],
  requests: readonly number[],
): void {
  const lines = KINDS.map(({ speed }) => {
    const own = ages.filter((age) => age.speed === speed)
    const sorted = own.filter(({ isSeen }) => isSeen).map(({ minutes }) => minutes)
    sorted.sort((a, b) => a - b)
    const at = (part: number) => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(1)
    return `${own.length} new, ${sorted.length} seen after ${at(0.5)} min, p95 ${at(0.95)}, last ${at(1)}`
  })
  const spans = [1, 5, 20].map((minutes) => `${mostIn(requests, minutes * MINUTE)} in ${minutes} min`)
  process.stdout.write(`${lines.join('\n')}\n${requests.length} requests; at most ${spans.join(', ')}\n`)
}
