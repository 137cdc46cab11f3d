import { beforeEach, describe, expect, it } from 'vitest'
import type { JobError } from '../../src/errors.ts'
import { asOwner, namesOf } from '../../src/store/core/jobs.ts'
import { daemons, type IsAlive, type LeaseOptions, type Leases } from '../../src/store/core/leases.ts'
import { run, type Runner } from '../../src/store/core/sql.ts'
import { jobOf } from '../helpers/jobs.ts'
import { testLeases } from '../helpers/leases.ts'

// Which process has a job, on either database.

const JOB = namesOf(jobOf())
const KEPT = { ...JOB, collection: 'kept' }

const HOUR = 3_600_000

/** The epoch of the job where this process can take it. */
const epochOf = async (leases: Leases) => (await leases.take(JOB, false))?.epoch ?? null

/** `openMirror`: makes one; its `open` returns the connection of one more process. */
export function describeLeases(kind: string, openMirror: () => Promise<{ open(): Promise<Runner> }>): void {
  describe(`${kind}: the owner of a job`, () => {
    let open: () => Promise<Runner>
    let runner: Runner
    let first: Leases & { name: string }
    let clock: { ms: number }
    beforeEach(async () => {
      open = (await openMirror()).open
      runner = await open()
      clock = { ms: Date.now() }
      first = testLeases(runner, { now: () => clock.ms })
    })

    /** One more process. `waiting` happens before each of its writes, as others go first where a file is locked. */
    async function another(options: Partial<LeaseOptions> = {}, waiting: () => unknown = () => {}) {
      const { reading, writing } = await open()
      const after: Runner['writing'] = async (begin) => {
        await waiting()
        return writing(begin)
      }
      return testLeases({ reading, writing: after }, { now: () => clock.ms, ...options })
    }

    /** What a process that has taken the job with this epoch still may. */
    const write = (epoch: number | null) =>
      runner
        .writing(() =>
          asOwner(runner.dialect, { job: JOB, name: 'orders', epoch: epoch ?? 0 }, () =>
            run('UPDATE sync_jobs SET rows = rows + 1'),
          ),
        )
        .then(
          () => 'written',
          ({ code }: JobError) => code,
        )

    it('keeps the job until it gives it back or ends, and gives back only what is its own', async () => {
      const second = await another()
      const own = await epochOf(first)

      expect([await epochOf(second), await epochOf(first)]).toEqual([null, null])
      await second.release({ job: JOB, epoch: -1 })
      expect(await epochOf(second)).toBeNull()
      await first.release({ job: JOB, epoch: own ?? 0 })
      expect(await epochOf(second)).not.toBeNull()
      await second.close()
      expect(await epochOf(first)).not.toBeNull()
    })

    it('is followed at once where it is known to be dead, and writes nothing from then on', async () => {
      const own = await epochOf(first)
      const isAlive: IsAlive = (name) => (name === first.name ? false : null)
      const next = await epochOf(await another({ isAlive }))
      await first.release({ job: JOB, epoch: own ?? 0 })

      expect(await write(own)).toBe('BUSY')
      expect(await write(next)).toBe('written')
      // It lives after all, and says so.
      await first.beat()
      expect([await write(own), await epochOf(first)]).toEqual(['BUSY', null])
    })

    it('is followed though it was heard once more while it was listened to, and died then', async () => {
      const own = await epochOf(first)
      clock.ms += HOUR
      let isDead = false
      const sleep = async () => {
        await first.beat()
        isDead = true
      }
      const next = await epochOf(await another({ sleep, isAlive: () => (isDead ? false : null) }))

      expect([await write(own), await write(next)]).toEqual(['BUSY', 'written'])
    })

    it.each([null, true])('is followed when it is silent for long, whatever is known (%j)', async (known) => {
      const own = await epochOf(first)
      clock.ms += 9000
      const soon = await epochOf(await another({ isAlive: () => known }))
      clock.ms += 2000
      const then = await epochOf(await another({ isAlive: () => known }))

      expect([soon, await write(own), await write(then)]).toEqual([null, 'BUSY', 'written'])
    })

    // While there is a lock nobody writes; whoever wants the job writes before its owner then.
    it.each<[how: string, byMs: number, locked: [fromMs: number, toMs: number]]>([
      ['forth', HOUR, [0, 0]],
      ['back', -HOUR, [0, 0]],
      ['and there is a lock when somebody begins to listen', HOUR, [0, 6500]],
      ['and there is one while somebody listens', HOUR, [1000, 7500]],
    ])('keeps the job, since it is heard, if the clock is set %s', async (_how, byMs, [from, to]) => {
      const own = await epochOf(first)
      clock.ms += byMs
      let [ms, heardAt] = [0, 0]
      async function sleep(sleptMs: number) {
        for (let slept = 0; slept < sleptMs; slept += 500) {
          ms += 500
          if ((ms > from && ms <= to) || ms - heardAt < 2500) continue
          heardAt = ms
          await first.beat()
        }
      }
      const waiting = async () => {
        if (ms >= from) await sleep(to - ms)
      }

      expect(await epochOf(await another({ sleep, elapsed: () => ms }, waiting))).toBeNull()
      expect(await write(own)).toBe('written')
    })

    it('keeps the job if it is heard while whoever takes that waits to write', async () => {
      const own = await epochOf(first)
      clock.ms += HOUR
      const taker = await another({ isAlive: () => false }, () => first.beat())

      expect(await epochOf(taker)).toBeNull()
      expect(await write(own)).toBe('written')
    })

    it('is followed in all its jobs by processes that come at once', async () => {
      await first.take(KEPT, false)
      await epochOf(first)
      const next = await another({ isAlive: () => false })

      expect(await Promise.all([next.take(JOB, false), next.take(KEPT, false)])).not.toContain(null)
    })

    it('is buried by whoever looks, and says that it lives before it takes another job', async () => {
      let ms = 0
      const sleeper = await another({ elapsed: () => ms })
      const own = await epochOf(sleeper)
      clock.ms += HOUR
      expect(await first.isFree(JOB)).toBe(true)
      ms += HOUR
      const kept = await sleeper.take(KEPT, false)

      expect([own, await epochOf(first)]).toEqual([expect.any(Number), null])
      expect(kept).not.toBeNull()
      expect(await first.take(KEPT, false)).toBeNull()
    })

    it('gives back with its next word what it could not give back, and no more', async () => {
      let isRefused = false
      const leases = await another({}, () => {
        if (isRefused) throw new Error('refused')
      })
      const own = await epochOf(leases)
      await leases.take(KEPT, false)
      isRefused = true
      await expect(leases.release({ job: JOB, epoch: own ?? 0 })).rejects.toThrow('refused')
      isRefused = false

      expect(await epochOf(first)).toBeNull()
      await leases.beat()
      expect(await epochOf(first)).not.toBeNull()
      expect(await first.take(KEPT, false)).toBeNull()
    })

    it('says now and then that it lives, as a start without a job', async () => {
      let [tick, ms] = [() => {}, 0]
      const every: LeaseOptions['every'] = (_ms, task) => {
        tick = task
        return () => {}
      }
      const leases = await another({ every, elapsed: () => ms })
      const isRunning = async () =>
        (await runner.reading(daemons(() => null, clock.ms))).map(({ running }) => running)
      await leases.announce('one')

      for (const passed of [45_000, 45_000]) {
        clock.ms += passed
        ms += passed
        tick()
        await expect.poll(isRunning).toEqual([true])
      }
      clock.ms += 70_000
      expect(await isRunning()).toEqual([false])
    })

    it('is known as a start while it lives, and after its death until the next one begins', async () => {
      const dead = new Set<string>()
      const isAlive: IsAlive = (name) => !dead.has(name)
      const start = () => another({ isAlive, now: () => clock.ms++ })
      const told = async () =>
        (await runner.reading(daemons(isAlive, clock.ms))).map(({ pid, running, configuration }) => {
          expect(pid).toBe(process.pid)
          return [configuration, running]
        })
      const [one, two, three] = [await start(), await start(), await start()]

      await one.announce('one')
      await two.announce('two')
      dead.add(one.name)
      await one.close()
      expect(await told()).toEqual([
        ['one', false],
        ['two', true],
      ])
      two.withdraw()
      await two.close()
      expect(await told()).toEqual([['one', false]])
      await three.announce('three')
      expect(await told()).toEqual([['three', true]])
    })
  })
}
