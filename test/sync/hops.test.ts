import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { NEVER, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

it.override({ options: { settings: { schedule: NEVER } } })

/** Our functions that are waiting now, the outermost first. */
function hopsHere(): string[] {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('where')
  Error.stackTraceLimit = before
  const hops = stack.matchAll(/at (?:async )?(?:(\S+) \()?\S*\/src\/(\S+?):/g)
  return Array.from(hops, ([, name = '', file]) => `${file} ${name.split('.').at(-1)}`.trim()).toReversed()
}

it('from a tick of start to the statement that writes a page at most 14 functions wait', async ({
  scene,
}) => {
  const statements: Database.Statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'))
  const { run } = statements
  let hops: string[] = []
  statements.run = function (...values: unknown[]) {
    if (this.source.includes('INTO sync_pages')) hops = hopsHere()
    return run.apply(this, values)
  }
  onTestFinished(() => {
    statements.run = run
  })

  const start = scene.workspace.startHere(['start'])
  await start.log(({ event }) => event === 'run_finished')
  start.kill('SIGTERM')
  await start.ended

  expect([hops[0], hops.at(-1)]).toEqual([
    'cli/commands/start.ts runOne',
    'store/sqlite/driver.ts runStatement',
  ])
  expect(hops.length, hops.join('\n')).toBeLessThanOrEqual(14)
})
