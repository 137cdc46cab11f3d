import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { mustRun } from '../helpers/system.ts'
import { type Asked, createDoor, items, type ListServer, pageOf, type Reply, serve } from './list-server.ts'
import type { Ended, LogLine } from './processes.ts'
import { createWorkspace, organization, type Settings, variable, type Workspace } from './workspace.ts'

const ITEMS = items(4)
const NEVER = '0 0 29 2 *'
const BOTH = { orders: {}, establishments: {} }
const OLD = '1|Secret-of-old-Kf82hLq0Zx'
const NEW = '2|Secret-of-new-Wm51sTe7Ub'

/** Three organizations that share a token, and one with its own. */
const SHARING = [1, 2, 3].map((number) => organization(`sharing-${number}`, number, { token: OLD }))
const OTHER = organization('other', 4)

/** Answers with lists, but for a token for which `status` says something else. */
async function api(status: (asked: Asked) => number | Promise<number>): Promise<ListServer> {
  return serve(async (asked): Promise<Reply> => {
    const code = await status(asked)
    return code === 200 ? pageOf(ITEMS, asked) : { status: code, body: { message: `no: ${asked.token}` } }
  })
}

function settings(server: ListServer, more: Partial<Settings> = {}): Settings {
  return {
    baseUrl: server.url,
    organizations: [...SHARING, OTHER],
    collections: BOTH,
    schedule: NEVER,
    ...more,
  }
}

function sentWith({ asked }: ListServer, token: string): number {
  return asked.filter((one) => one.token === token).length
}

function held(workspace: Workspace): unknown[] {
  return workspace.rows(
    'SELECT name, held_reason FROM organizations WHERE held_since IS NOT NULL ORDER BY name',
  )
}

function alone(token: string) {
  return [organization('acme', 1, { token })]
}

// One sync that met the 401, for all tests that look at what it leaves or go on from there.
let first: { server: ListServer; workspace: Workspace; sync: Ended }

beforeAll(async () => {
  const server = await api(({ token }) => (token === OLD ? 401 : 200))
  const workspace = createWorkspace(settings(server, { concurrency: 1 }))
  const sync = await workspace.run(['sync', '--log-level', 'trace'])
  first = { server, workspace, sync }
})

/** The commands in double quotes that a text proposes, be it JSON or not. */
function proposedIn(text: string): string[] {
  return Array.from(text.matchAll(/"admin-mirror ([^"\\]+)\\?"/g), ([, words = '']) => words)
}

/** A copy of the mirror in which the three are held, and a server that has seen no request yet. */
async function afterRefusal(status: { of: number }) {
  const server = await api(({ token }) => (token === OLD ? status.of : 200))
  const workspace = createWorkspace(settings(server, { concurrency: 1 }))
  fs.copyFileSync(first.workspace.mirror, workspace.mirror)
  return { server, workspace }
}

describe.concurrent('a token that is refused', () => {
  it('comes with a command that works as it is typed, wherever it shows', async () => {
    const { workspace } = await afterRefusal({ of: 401 })
    const named = ['--config', 'admin-mirror.yaml']
    const run = (...args: string[]) =>
      workspace.run([...args, ...named], { env: { ADMIN_MIRROR_CONFIG: '/nowhere' } })
    const org = ['--org', 'sharing-2']
    const sync = await run('sync', '--json', ...org)
    const verify = await run('verify', '--json', ...org)
    const shown = [
      sync.logs.map(({ error_message: message }) => message).join(),
      sync.stdout,
      verify.stdout,
      (await run('check', '--json')).stdout,
      (await run('status', '--json')).stdout,
    ]

    for (const commands of shown.map(proposedIn)) {
      expect(commands).not.toEqual([])
      for (const command of commands)
        expect(command).toMatch(/^resume( --org \S+)? --config admin-mirror\.yaml$/)
    }
    const [command = ''] = proposedIn(sync.stdout)
    const resumed = await workspace.run(command.split(' '), { env: { ADMIN_MIRROR_CONFIG: '/nowhere' } })
    expect(resumed.code).toBe(0)
    expect(resumed.stderr).toContain('no longer held: sharing-2')
    expect(resumed.stderr).toContain('admin-mirror sync --org sharing-2 --config admin-mirror.yaml\n')
  })

  it('is sent once, whoever else has it, and holds all of them; the others go on', async () => {
    const { server, workspace, sync } = first

    expect(sync.code).toBe(3)
    expect(sync.stdout).toBe('')
    expect(sentWith(server, OLD)).toBe(1)
    expect(held(workspace)).toEqual(
      SHARING.map(({ name }) => ({ name, held_reason: expect.stringContaining('401') })),
    )
    expect(workspace.rows("SELECT rows FROM sync_status WHERE organization = 'other'")).toEqual([
      { rows: 4 },
      { rows: 4 },
    ])
  })

  it('is told by a message that names the organization and what to do', async () => {
    const messages = first.sync.logs.filter((line) => line.error_code === 'UNAUTHORIZED')

    expect(messages.length).toBeGreaterThan(0)
    expect(messages[0]).toMatchObject({
      level: 'error',
      error_message: expect.stringMatching(/sharing-1.*401.*new token.*admin-mirror resume --org sharing-1/),
    })
  })

  it('leaves a line in sync_runs only of the job that was refused', async () => {
    expect(
      first.workspace.rows("SELECT status, requests FROM sync_runs WHERE error_code = 'UNAUTHORIZED'"),
    ).toEqual([{ status: 'failed', requests: 1 }])
  })

  it('is not sent again after the first 401, but for what was on its way', async () => {
    const refusal = createDoor()
    const seconds = () => server.asked.filter(({ page }) => page === 2).length
    const server = await api(async ({ page }) => {
      if (page === 1) return 200
      if (seconds() === 3) refusal.open()
      await refusal.opened
      return 401
    })
    const workspace = createWorkspace(settings(server, { concurrency: 3, organizations: SHARING }))

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(3)
    // All three that may be in flight at once, of six jobs that wanted to.
    expect(seconds()).toBe(3)
  })

  it('in the middle of a walk keeps the checkpoint, and another token goes on from there', async () => {
    const server = await api(({ token, page }) => (token === OLD && page === 2 ? 401 : 200))
    const collections = { establishments: false }
    const workspace = createWorkspace(settings(server, { organizations: alone(OLD), collections }))

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(3)
    expect(server.asked.map(({ page }) => page)).toEqual([1, 2])
    expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
      { status: 'open', next_page: 2 },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(2)

    workspace.configure(settings(server, { organizations: alone(NEW), collections }))
    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    expect(sentWith(server, OLD)).toBe(2)
    expect(held(workspace)).toEqual([])
    expect(workspace.rows('SELECT status, coverage FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'steady' },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })
})

describe.concurrent('an organization that is held', () => {
  it('is sent nothing by start', async () => {
    const { server, workspace } = await afterRefusal({ of: 401 })
    const start = workspace.start(['start', '--log-level', 'trace'])
    for (const { name } of SHARING) {
      await start.log((line) => line.organization === name && line.error_code === 'UNAUTHORIZED')
    }
    start.kill('SIGTERM')
    const { code } = await start.ended

    expect(code).toBe(0)
    expect(server.asked).toEqual([])
    expect(held(workspace)).toHaveLength(3)
  })

  it('is held no longer when a sync by hand is answered', async () => {
    const { server, workspace } = await afterRefusal({ of: 200 })

    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    expect(held(workspace)).toEqual([])
    // Each of the six jobs is asked for again: its two pages and one of them again.
    expect(sentWith(server, OLD)).toBe(6 * 3)
  })

  it('is held no longer when the configuration has another token', async () => {
    const { server, workspace } = await afterRefusal({ of: 401 })
    const organizations = SHARING.map((one) => ({ ...one, token: NEW }))
    workspace.configure(settings(server, { organizations }))

    const start = workspace.start(['start', '--log-level', 'trace'])
    const isShared = (line: LogLine) => SHARING.some(({ name }) => name === line.organization)
    // Each has two collections.
    await start.logs((line) => isShared(line) && line.event === 'run_finished', 2 * SHARING.length)
    start.kill('SIGTERM')
    await start.ended

    expect(held(workspace)).toEqual([])
    expect(sentWith(server, OLD)).toBe(0)
    expect(workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'")).toBe(8)
  })

  it('is held no longer after resume, which needs no token and sends nothing', async () => {
    const { server, workspace } = await afterRefusal({ of: 200 })
    const organizations = SHARING.map((one) => ({ ...one, token: variable('NOT_SET') }))
    workspace.configure(settings(server, { organizations }))

    const resume = await workspace.run(['resume'])

    expect(resume.code).toBe(0)
    expect(resume.stderr).toContain('sharing-1, sharing-2, sharing-3')
    expect(held(workspace)).toEqual([])
    expect(server.asked).toEqual([])
  })

  it('is sent nothing whenever its time comes, until resume in another terminal', async () => {
    const status = { of: 401 }
    const server = await api(() => status.of)
    const workspace = createWorkspace(
      settings(server, {
        organizations: alone(OLD),
        schedule: '* * * * * *',
        collections: { establishments: false },
      }),
    )
    const start = workspace.start(['start', '--log-level', 'trace'])
    await start.logs(({ event }) => event === 'run_not_begun', 2)

    expect(server.asked).toHaveLength(1)

    status.of = 200
    await workspace.run(['resume', '--org', 'acme'])
    await start.log((line) => line.event === 'run_finished' && line.status === 'succeeded')
    start.kill('SIGTERM')
    expect((await start.ended).code).toBe(0)
  })

  it('goes on alone after resume --org, though others with the same token stay held', async () => {
    const status = { of: 401 }
    const server = await api(() => status.of)
    const sharing = [
      organization('acme', 1),
      organization('globex', 2, { token: organization('acme', 1).token }),
    ]
    const workspace = createWorkspace(settings(server, { organizations: sharing }))
    await workspace.run(['sync'])
    status.of = 200

    await workspace.run(['resume', '--org', 'acme'])
    const asked = server.asked.length
    const start = workspace.start(['start'])
    await start.logs(({ event, organization: name }) => event === 'run_finished' && name === 'acme', 1)
    start.kill('SIGTERM')
    await start.ended

    expect(server.asked.slice(asked).map((one) => one.organization)).toContain(sharing[0]?.id)
    expect(server.asked.slice(asked).map((one) => one.organization)).not.toContain(sharing[1]?.id)
  })

  it('alone is held no longer after resume --org', async () => {
    const server = await api(({ token }) => (token === OTHER.token ? 200 : 401))
    const organizations = [organization('acme', 1), organization('globex', 2), OTHER]
    const workspace = createWorkspace(settings(server, { organizations }))
    await workspace.run(['sync'])

    const resume = await workspace.run(['resume', '--org', 'GLOBEX'])

    expect(resume.code).toBe(0)
    expect(held(workspace)).toEqual([{ name: 'acme', held_reason: expect.any(String) }])
  })

  it('is shown by status, with what to do', async () => {
    const { workspace } = await afterRefusal({ of: 401 })

    const human = await workspace.run(['status'])
    const json = await workspace.run(['status', '--json'])

    expect(human).toMatchObject({ code: 0, stderr: '' })
    expect(human.stdout).toMatch(/held since .*401/)
    expect(human.stdout).toMatch(/next: .*admin-mirror resume --org sharing-1/)
    const { jobs } = JSON.parse(json.stdout) as {
      jobs: { organization: string; held_since: string | null }[]
    }
    expect(jobs.filter((job) => job.held_since !== null).map((job) => job.organization)).toEqual(
      SHARING.flatMap(({ name }) => [name, name]),
    )
  })
})

/** An organization whose token stands in a file, beside one with its own. */
function withFile(server: ListServer, more: Partial<Settings> = {}) {
  const { token: _, ...acme } = organization('acme', 1, { tokenFile: 'acme.token' })
  const workspace = createWorkspace(
    settings(server, { organizations: [acme, OTHER], concurrency: 1, ...more }),
  )
  const write = (token: string) =>
    fs.writeFileSync(workspace.file('acme.token'), `${workspace.secret(token)}\n`)
  return { workspace, write }
}

describe.concurrent('a token file', () => {
  it('that is exchanged while its token is refused has that one sent once, too, and goes on with the new one', async () => {
    const server = await api(({ token }) => {
      if (token !== OLD) return 200
      write(NEW)
      return 401
    })
    const { workspace, write } = withFile(server)
    write(OLD)

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(3)
    expect(sentWith(server, OLD)).toBe(1)

    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    expect(sentWith(server, OLD)).toBe(1)
    expect(held(workspace)).toEqual([])
  })

  it.each<[string, (file: string, workspace: Workspace) => void]>([
    ['a pipe, which nobody writes into,', (file) => mustRun('mkfifo', file)],
    ['a device', (file) => fs.symlinkSync('/dev/zero', file)],
    [
      'a large key',
      (file, workspace) => fs.writeFileSync(file, workspace.secret('Kf82hLq0ZxWm51sTe7UbQp93'.repeat(1100))),
    ],
  ])('that is %s fails the jobs that need it with CONFIGURATION, and no other', async (_what, make) => {
    const server = await api(() => 200)
    const { workspace } = withFile(server)
    make(workspace.file('acme.token'), workspace)

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(workspace.rows('SELECT DISTINCT organization FROM sync_status WHERE error_code IS NULL')).toEqual([
      { organization: 'other' },
    ])
    expect(workspace.value("SELECT count(*) FROM sync_status WHERE error_code = 'CONFIGURATION'")).toBe(2)
    expect(server.asked.every(({ token }) => token === OTHER.token)).toBe(true)
  })

  it('that is missing fails the jobs that need it with CONFIGURATION, and no other', async () => {
    const server = await api(() => 200)
    const { workspace } = withFile(server)

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(sync.logs.filter((line) => line.error_code === 'CONFIGURATION')).toHaveLength(2)
    expect(
      workspace.rows(`
        SELECT organization, collection, last_run_status, error_code
        FROM sync_status
        ORDER BY organization, collection
      `),
    ).toEqual([
      {
        organization: 'acme',
        collection: 'establishments',
        last_run_status: 'failed',
        error_code: 'CONFIGURATION',
      },
      { organization: 'acme', collection: 'orders', last_run_status: 'failed', error_code: 'CONFIGURATION' },
      { organization: 'other', collection: 'establishments', last_run_status: 'succeeded', error_code: null },
      { organization: 'other', collection: 'orders', last_run_status: 'succeeded', error_code: null },
    ])
    expect(workspace.value("SELECT error_message FROM sync_runs WHERE error_code = 'CONFIGURATION'")).toMatch(
      /acme\.token.*acme/,
    )
  })
})
