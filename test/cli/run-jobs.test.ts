import { expect, it } from 'vitest'
import { createRunner, syncPlan } from '../../src/cli/run-jobs.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { hearing } from '../helpers/run-once.ts'
import { scriptedList } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

it('a signal while hundreds of lists begin is met before the next one, which leaves no run', async () => {
  const { store, tokens, clock, value } = openTestMirror()
  const organizations = Array.from({ length: 200 }, (_, index) => organization(`o${index}`, index + 1))
  const workspace = createWorkspace({ baseUrl: 'http://127.0.0.1:9', organizations })
  const options = { env: {}, tokens: 'leave', nameEnds: [] } as const
  const config = loadConfig(workspace.file('admin-mirror.yaml'), options)
  await tokens.register(organizations.map((one) => ({ ...one, collections: ['orders'] })))

  const stop = new AbortController()
  let turns = 0
  const yieldToEventLoop = async () => {
    turns++
    if (turns === 5) stop.abort()
  }
  const session = {
    store,
    source: async () => scriptedList({ ids: [1] }).source,
    refreshes: {
      policyOf: () => null,
      update: async () => {},
      next: never,
      budgetOf: never,
      watch: never,
    },
  }
  const reporter = { observe: () => hearing() }
  const run = createRunner({ config, session, reporter, runtime: { ...clock, yieldToEventLoop } })
  const results = await run(selectJobs(config, { org: [], collection: [] }), {
    plan: syncPlan(config),
    trigger: 'schedule',
    waitForOwner: false,
    signal: stop.signal,
  })

  expect(results.filter(({ error }) => error?.code === 'INTERRUPTED').length).toBeGreaterThan(180)
  expect(value('SELECT count(*) FROM sync_runs')).toBeLessThan(20)
})

function never(): never {
  throw new Error('not asked for here')
}
