import fs from 'node:fs'
import { expect, it } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import { faultsOf } from '../helpers/faults.ts'
import { createDoor, items, pageOf, serve } from '../helpers/list-server.ts'
import type { Ended } from '../helpers/processes.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// Processes that want one job in the same instant: each stops in front of the claim until all of them stand there, and
// who finds the job free takes its time to write that down. `ROUNDS=20 vitest run ...` lets them meet more often.

const ROUNDS = Number(process.env.ROUNDS ?? 1)

const RIVALS = [['sync'], ['sync'], ['sync', '--wait']]

const BEGIN = '^BEGIN IMMEDIATE$'
const CLAIM = '^INSERT INTO sync_jobs .*owner'

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

/** The claim is made in this transaction of a sync, which makes the mirror first. */
async function transactionOfClaim(workspace: Workspace): Promise<number> {
  await workspace.run(['sync'])
  let [count, claim] = [0, 0]
  const end = watchEdges({
    before({ what }) {
      if (new RegExp(BEGIN).test(what)) count++
      if (new RegExp(CLAIM).test(what)) claim ||= count
    },
  })
  await workspace.run(['sync'])
  end()
  expect(claim).toBeGreaterThan(0)
  return claim
}

/** Who has the job stays at the second page until each of the others waits, has ended, or came there, too. */
async function createScene() {
  const gauge = createGauge()
  let decided = RIVALS.length
  let end = createDoor()
  end.open()

  function decide(): void {
    if (++decided === RIVALS.length) end.open()
  }

  const server = await serve((asked) =>
    gauge.during(async () => {
      if (asked.page === 2) decide()
      if (asked.page === 2) await end.opened
      return pageOf(items(6), asked)
    }),
  )
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  const nth = await transactionOfClaim(workspace)

  /** Lets them meet, once. */
  async function meet(round: number): Promise<Ended[]> {
    decided = 0
    end = createDoor()
    const start = workspace.file(`start-${round}`)
    const env = faultsOf(
      { at: BEGIN, nth, does: { says: 'at the claim', until: start } },
      { at: CLAIM, does: { forMs: 100 } },
    )
    const all = RIVALS.map((args) => workspace.start(args, { env }))
    await Promise.all(all.map((one) => one.log(({ msg }) => msg === 'at the claim')))
    fs.writeFileSync(start, '')
    return Promise.all(
      all.map(async (one) => {
        const waits = one.log(({ msg }) => msg.includes('waiting for its end'))
        void waits.then(decide, () => {})
        return one.ended.finally(decide)
      }),
    )
  }

  return { workspace, meet, gauge }
}

it(`of processes that want one job in the same instant one has it; the others say BUSY, or wait, ${ROUNDS} times`, {
  timeout: ROUNDS * 120_000,
}, async () => {
  const { workspace, meet, gauge } = await createScene()

  for (let round = 1; round <= ROUNDS; round++) {
    const before = Number(workspace.value('SELECT count(*) FROM sync_runs'))
    const all = await meet(round)

    const losers = all.filter(({ code }) => code !== 0)
    expect(all.at(-1)?.code, all.at(-1)?.stderr).toBe(0)
    expect(losers.length).toBeGreaterThan(0)
    for (const { code, logs } of losers)
      expect([code, logs.at(-1)]).toMatchObject([1, { error_code: 'BUSY' }])
    const winners = RIVALS.length - losers.length
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(before + winners)
  }
  expect(gauge.most).toBe(1)
  expect(workspace.rows('SELECT DISTINCT status, pages FROM sync_runs')).toEqual([
    { status: 'succeeded', pages: 4 },
  ])
})
