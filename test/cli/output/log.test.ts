import { expect, it } from 'vitest'
import { items, pageOf } from '../../helpers/list-server.ts'
import { createScene } from '../../helpers/scene.ts'

// Tokens are looked for in the output of every command (test/helpers/workspace.ts).

it('the log names the event of every line, the run and the walk where it ends, and no value of a filter', async () => {
  let failures = 1
  const filters = { email: 'mr@secret.example' }
  const { workspace } = await createScene({
    settings: { collections: { orders: { filters }, establishments: false } },
    instead: (asked) =>
      asked.page === 2 && failures-- > 0 ? { status: 500, body: {} } : pageOf(items(8), asked),
  })

  const { code, logs, stderr } = await workspace.run(['sync', '--log-level', 'trace'])

  expect(code).toBe(0)
  expect(logs.filter(({ event }) => typeof event !== 'string')).toEqual([])
  expect(logs.filter(({ event }) => event === 'request_retried')).toMatchObject([
    { level: 'warn', error_code: 'SERVER_ERROR' },
  ])
  const [run] = workspace.rows('SELECT id, walk_id FROM sync_runs')
  expect(logs.find(({ event }) => event === 'run_finished')).toMatchObject({
    run_id: run?.id,
    walk_id: run?.walk_id,
    duration_ms: expect.any(Number),
  })
  expect(stderr).not.toMatch(/mr@secret|mr%40secret|Bearer|authorization/i)
})

it('a failure is told once', async () => {
  const { workspace } = await createScene({ instead: () => ({ status: 404, body: {} }) })

  const { logs } = await workspace.run(['sync', '--log-level', 'trace'])

  expect(logs.filter((line) => JSON.stringify(line).includes('not found (404)'))).toMatchObject([
    {
      level: 'error',
      event: 'run_finished',
      error_code: 'ORGANIZATION_NOT_FOUND',
      error_message: expect.stringMatching(/not found \(404\)/),
      msg: 'run failed',
    },
  ])
})
