import { describe, expect } from 'vitest'
import { organizationToForget } from '../../../src/cli/commands/forget.ts'
import { createDoor } from '../../helpers/list-server.ts'
import { ACME, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable } from '../../helpers/workspace.ts'

const it = sceneTests()

// Who is forgotten, and what is said of it. What is deleted: test/store/sqlite/walks/forget.test.ts.

const collections = { orders: {}, establishments: {} }
const FORGET_ACME = ['forget', '--org', 'acme', '--yes']

describe('forget', () => {
  it.override({ options: { settings: { organizations: [ACME, GLOBEX], collections } } })

  it('deletes one list, without a token and a request, and the next sync reads it anew', async ({
    synced,
  }) => {
    const { workspace, server, configure } = synced
    const unset = [ACME, GLOBEX].map((one) => ({ ...one, token: variable('NOBODY_SET_THIS') }))
    configure({ organizations: unset })

    const ended = await workspace.run(['forget', '--org', ACME.id, '--collection', 'orders', '--yes'])

    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^forgot acme orders: 4 rows, .*1 run\n$/),
      stderr: expect.stringContaining('still names acme, so the next sync reads it again'),
    })
    expect(server.asked).toEqual([])
    const counts = 'SELECT rows FROM sync_status ORDER BY organization, collection'
    expect(workspace.rows<{ rows: number }>(counts).map(({ rows }) => rows)).toEqual([4, 0, 4, 4])
    configure({})
    expect((await workspace.run(['sync'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8)
  })

  it('exits with 2 where nobody knows what is named', async ({ synced: { workspace } }) => {
    for (const [line, message] of [
      ['--org initech --yes', /initech.*acme, globex/],
      ['--org acme --collection items --yes', /items.*establishments, orders/],
    ] as const) {
      const { code, stderr } = await workspace.run(['forget', ...line.split(' ')])
      expect([line, code, stderr]).toEqual([line, 2, expect.stringMatching(message)])
    }
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8)
  })

  it('deletes an organization that left the configuration, and status names the command', async ({
    synced,
  }) => {
    const { workspace, configure } = synced
    configure({ organizations: [GLOBEX] })

    const before = await workspace.run(['status'])
    const forget = await workspace.run(FORGET_ACME)
    const again = await workspace.run(FORGET_ACME)

    expect(before.stdout).toMatch(
      /acme orders.*\n.*no longer in the configuration.*admin-mirror forget --org [-0-9a-f]{36} --collection orders --yes$/m,
    )
    expect([forget.code, again.code]).toEqual([0, 2])
    expect(workspace.rows('SELECT name FROM organizations')).toEqual([{ name: 'globex' }])
  })

  it('leaves a job alone that is being synced, and deletes the others', async ({ synced }) => {
    const { workspace, api, server } = synced
    const door = createDoor()
    api.instead = () => door.opened.then(() => null)
    const sync = workspace.startHere(['sync', '--org', 'acme', '--collection', 'orders'])
    await server.arrivals(() => true, 1)

    const forget = await workspace.run(FORGET_ACME)
    door.open()

    expect((await sync.ended).code).toBe(0)
    expect(forget.code).toBe(1)
    expect(forget.stderr).toMatch(/BUSY: acme orders: .*nothing of it was deleted/)
    expect(forget.stdout).toMatch(/^forgot acme establishments: 4 rows/)
    expect(workspace.value(`SELECT count(*) FROM orders WHERE _organization_id = '${ACME.id}'`)).toBe(4)
  })
})

const [ONE, OTHER] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const acme = (id: string, name = 'acme') => ({ id, name })

it.for<[string, { id: string; name: string }[], boolean]>([
  ['one name twice', [acme(ONE), acme(OTHER)], false],
  ['one that both know', [acme(ONE), acme(ONE)], true],
  ['one beside another in capitals', [acme(ONE), acme(OTHER, 'ACME')], true],
])(
  'the organization to forget is not chosen among two, since deleted data does not come back: %s',
  ([, known, isClear]) => {
    if (isClear) expect(organizationToForget('acme', known).id).toBe(ONE)
    else
      expect(() => organizationToForget('acme', known)).toThrow(
        /several organizations have this name; write the UUID \(.*1, .*2/,
      )
    expect(organizationToForget(ONE, known).id).toBe(ONE)
  },
)
