import fs from 'node:fs'
import { expect } from 'vitest'
import { organizationToForget } from '../../../src/cli/commands/forget.ts'
import { ACME, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable } from '../../helpers/workspace.ts'

const it = sceneTests()

// Who is forgotten, and what is said of it. What is deleted: test/store/sqlite/walks/forget.test.ts; of the published file, too:
// test/stories/published.test.ts.

const collections = { orders: {}, establishments: {} }
it.override({ options: { settings: { organizations: [ACME, GLOBEX], collections } } })

const ROWS = 'SELECT rows FROM sync_status ORDER BY organization, collection'

it('forget deletes one list, without a token and a request, and the next sync reads it anew; or who left the configuration', async ({
  synced: { workspace, server, configure },
}) => {
  const rows = () => workspace.rows<{ rows: number }>(ROWS).map((list) => list.rows)
  const organizations = [ACME, GLOBEX].map((one) => ({ ...one, token: variable('NOT_SET') }))
  configure({ organizations, publish: 'published.db' })
  const forget = (line: string) => workspace.run(`forget ${line} --yes`.split(' '))

  for (const [line, message] of [
    ['--org initech', /initech.*acme, globex/],
    ['--org acme --collection items', /items.*establishments, orders/],
  ] as const)
    expect(await forget(line)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  expect(fs.existsSync(workspace.file('published.db'))).toBe(false)
  expect(await forget(`--org ${ACME.id} --collection orders`)).toMatchObject({
    code: 0,
    stdout: 'forgot acme orders: 4 rows\n',
    stderr: expect.stringContaining('still names acme, so the next sync reads it again'),
  })
  expect([rows(), server.asked]).toEqual([[4, 0, 4, 4], []])
  configure({})
  expect((await workspace.run(['sync'])).code).toBe(0)
  expect(rows()).toEqual([4, 4, 4, 4])

  configure({ organizations: [GLOBEX] })
  expect([(await forget('--org acme')).code, (await forget('--org acme')).code]).toEqual([0, 2])
  expect(workspace.rows('SELECT name FROM organizations')).toEqual([{ name: 'globex' }])
})

it('forget leaves a job alone that is being synced, and deletes the others', async ({
  synced: { workspace, api, server },
}) => {
  const door = Promise.withResolvers<void>()
  api.instead = () => door.promise.then(() => null)
  const sync = workspace.startHere(['sync', '--org', 'acme', '--collection', 'orders'])
  await server.arrival(() => true)

  const forget = await workspace.run(['forget', '--org', 'acme', '--yes'])
  door.resolve()

  expect((await sync.ended).code).toBe(0)
  expect(forget).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^forgot acme establishments: 4 rows/),
    stderr: expect.stringMatching(/^BUSY: acme orders: .*nothing of it was deleted\n$/),
  })
  expect(workspace.value(`SELECT count(*) FROM orders WHERE _organization_id = '${ACME.id}'`)).toBe(4)
})

const named = (id: string, name = 'acme') => ({ id, name })

it.for<[string, { id: string; name: string }[], string | RegExp]>([
  ['one name twice', [named('1'), named('2')], /several .* write the UUID \(1, 2\)/],
  ['one that both know', [named('1'), named('1')], '1'],
  ['one beside another in capitals', [named('1'), named('2', 'ACME')], '1'],
])(
  'the organization to forget is not chosen among two, since deleted data does not come back: %s',
  ([, known, who]) => {
    if (typeof who === 'string') expect(organizationToForget('acme', known).id).toBe(who)
    else expect(() => organizationToForget('acme', known)).toThrow(who)
    expect(organizationToForget('1', known).id).toBe('1')
  },
)
