import { describe, expect, it } from 'vitest'
import { createClock } from '../../helpers/clock.ts'
import { ACME, GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { LONG } from '../../helpers/long.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { upTo } from '../../helpers/scripted-list.ts'
import { begin } from '../stage.ts'

const server = await openDatabase()

const ROUNDS = LONG ? 54 : 2
const ITEMS = 25
/** Fewer than a page has. */
const AT_ONCE = 10
const OWNERS = [ACME, GLOBEX, { id: '9d0b3c4a-52c7-4a86-9d0b-3c4a5f6b7c8d', name: 'initech' }]

describe.skipIf(server.missing !== null)('a follower of orders_changes', { timeout: 1_800_000 }, () => {
  it('misses no event and has none twice beside three workers whose commits wait, and locks of whole tables', async () => {
    const clock = { ...createClock(), now: Date.now }
    const first = await openPostgresMirror(newSchema(server), clock)
    const others = await Promise.all([2, 3].map(() => openPostgresMirror(first.address, clock)))
    const workers = [first, ...others].map((mirror, index) => begin(mirror, jobOf({}, OWNERS[index])))
    const walks = await Promise.all(workers)
    const itemsOf = (round: number) => upTo(ITEMS).map((id) => `{"id":${id},"a":${round}}`)
    await walks[0]?.page(...itemsOf(0))
    // Each transaction waits before its COMMIT, one of them for longer than the others.
    await first.rows(`
      CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(random() * random() * 0.2); RETURN NULL; END $$
    `)
    await first.rows(`
      CREATE CONSTRAINT TRIGGER stall AFTER UPDATE ON sync_runs DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION stall()
    `)
    const locker = await openReader(first.address)
    const locking = async () => {
      for (const table of ['orders', 'orders_history', 'sync_seq', 'sync_runs']) {
        await locker('BEGIN')
        await locker(`LOCK TABLE ${table} IN SHARE MODE`)
        await locker('SELECT pg_sleep(0.1)')
        await locker('COMMIT')
      }
    }
    const EVENTS_AFTER =
      'SELECT seq, _organization_id AS org, id, change, after FROM orders_changes WHERE seq > $1 ORDER BY seq'
    const read: string[] = []
    let last = '0'
    const poll = async () => {
      for (;;) {
        const events = await first.rows(`${EVENTS_AFTER} LIMIT ${AT_ONCE}`, last)
        for (const event of events) {
          last = String(event.seq)
          read.push(JSON.stringify(event))
        }
        if (events.length < AT_ONCE) return
      }
    }
    const done = new AbortController()
    const following = (async () => {
      while (!done.signal.aborted) {
        await poll()
        await new Promise((wake) => setTimeout(wake, 20))
      }
    })()
    const working = walks.map(async ({ page }) => {
      for (let round = 1; round <= ROUNDS; round++) await page(...itemsOf(round))
    })
    await Promise.all([locking(), ...working])
    done.abort()
    await following
    await poll()

    const written = (await first.rows(EVENTS_AFTER, '0')).map((event) => JSON.stringify(event))
    expect(written.length).toBe(ITEMS * (1 + ROUNDS * walks.length))
    expect(new Set(read).size).toBe(read.length)
    expect(read.toSorted()).toEqual(written.toSorted())
  })
})
