import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { asksBefore, dawdlesBefore } from '../helpers/planted.ts'
import { createDoor, items, pageOf, serve } from './list-server.ts'
import type { Ended } from './processes.ts'
import { createWorkspace, organization } from './workspace.ts'

// Processes that want one job in the same instant: each stops in front of the claim until all of them stand there, and
// who finds the job free takes its time to write that down.
// `ROUNDS=20 vitest run ...` lets them meet more often.

const ROUNDS = Number(process.env.ROUNDS ?? 3)

/** Counts requests to the list that are in flight together. */
function createGauge() {
  let inFlight = 0
  const gauge = {
    most: 0,
    async during<T>(task: () => Promise<T>): Promise<T> {
      gauge.most = Math.max(gauge.most, ++inFlight)
      return task().finally(() => inFlight--)
    },
  }
  return gauge
}

/** So many rivals; who has the job stays at the second page until each of the others waits, has ended, or came there, too. */
async function createScene(rivals: number) {
  const gauge = createGauge()
  let [atClaim, decided] = [0, 0]
  let [start, end] = [createDoor(), createDoor()]

  function decide(): void {
    if (++decided === rivals) end.open()
  }

  const server = await serve((asked) => {
    if (asked.path === '/claim') {
      if (++atClaim === rivals) start.open()
      return start.opened.then(() => ({}))
    }
    return gauge.during(async () => {
      if (asked.page === 2) decide()
      if (asked.page === 2) await end.opened
      return pageOf(items(6), asked)
    })
  })
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  const planted = patchedBy(
    asksBefore(
      'src/sync/lease/acquire.ts',
      'const { lease, heldBy, work = null } = await store.acquire(job)',
      `${server.url}/claim`,
    ),
    dawdlesBefore(
      'src/store/sqlite/leases.ts',
      'setOwner.run(organizationId, collection, name, isVerify ? 1 : 0)',
      100,
    ),
  )

  async function live(args: readonly string[]): Promise<Ended> {
    const running = workspace.start(args, { env: planted })
    const waits = running.log(({ msg }) => msg.includes('waiting for its end'))
    void waits.then(decide, () => {})
    const ended = await running.ended
    decide()
    return ended
  }

  /** Lets them meet, once. */
  function meet(args: readonly string[]): Promise<Ended[]> {
    ;[atClaim, decided] = [0, 0]
    ;[start, end] = [createDoor(), createDoor()]
    return Promise.all(Array.from({ length: rivals }, () => live(args)))
  }

  return { workspace, meet, gauge }
}

describe.concurrent('of processes that want one job in the same instant', () => {
  const rivals = 4

  it(`one has it, and the others say BUSY, ${ROUNDS} times`, async () => {
    const { workspace, meet, gauge } = await createScene(rivals)

    for (let round = 1; round <= ROUNDS; round++) {
      const all = await meet(['sync'])

      const losers = all.filter(({ code }) => code !== 0)
      expect(losers).toHaveLength(rivals - 1)
      for (const { code, logs } of losers) expect([code, logs]).toMatchObject([1, [{ error_code: 'BUSY' }]])
      expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(round)
    }
    expect(gauge.most).toBe(1)
    expect(workspace.rows('SELECT DISTINCT status, pages FROM sync_runs')).toEqual([
      { status: 'succeeded', pages: 4 },
    ])
  }, 600_000)
})

describe.concurrent('of processes that wait for one job', () => {
  it('each has it in its turn, and never two at once', async () => {
    const { workspace, meet, gauge } = await createScene(3)

    const all = await meet(['sync', '--wait'])

    expect(all.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(gauge.most).toBe(1)
    expect(workspace.rows('SELECT status, pages FROM sync_runs')).toEqual(
      all.map(() => ({ status: 'succeeded', pages: 4 })),
    )
  })
})
