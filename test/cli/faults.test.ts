import { beforeAll, describe, expect, it } from 'vitest'
import { type Asked, items, type ListServer, pageOf, type Reply, serve } from './list-server.ts'
import type { Ended } from './processes.ts'
import { createWorkspace, organization } from './workspace.ts'

// One sync of many organizations, to each of which the server does something else. Wherever it can, it echoes the token,
// which must show nowhere: each workspace looks for it.

const ITEMS = items(4)
const HEALTHY = (asked: Asked) => pageOf(ITEMS, asked)

function refusal(status: number) {
  return ({ token }: Asked): Reply => ({
    status,
    headers: {
      'x-debug-authorization': `Bearer ${token}`,
      location: `http://127.0.0.1/login?token=${token}`,
    },
    body: { message: `You sent ${token}.`, token },
  })
}

function withNext(next: (asked: Asked) => unknown) {
  return (asked: Asked): Reply => {
    const { body } = pageOf(ITEMS, asked)
    return { body: { ...(body as object), links: { next: next(asked) } } }
  }
}

interface Fault {
  name: string
  reply: (asked: Asked, count: number) => Reply
  code: string | null
  requests: number
  retries?: number
  says?: RegExp
}

const FAULTS: Fault[] = [
  { name: 'healthy', reply: HEALTHY, code: null, requests: 2 },
  { name: 'bad-request', reply: refusal(400), code: 'BAD_REQUEST', requests: 1, says: /400/ },
  { name: 'forbidden', reply: refusal(403), code: 'FORBIDDEN', requests: 1, says: /403/ },
  {
    name: 'not-found',
    reply: refusal(404),
    code: 'ORGANIZATION_NOT_FOUND',
    requests: 1,
    // Either of the two may be wrong.
    says: /not-found orders.*404.*http:\/\/127\.0\.0\.1:/,
  },
  { name: 'moved', reply: refusal(302), code: 'UNEXPECTED_STATUS', requests: 1, says: /302/ },
  { name: 'invalid', reply: refusal(422), code: 'UNEXPECTED_STATUS', requests: 1, says: /422/ },
  {
    name: 'html',
    reply: ({ token }) => ({ body: `<html><title>Whoops ${token}</title>${token}</html>` }),
    code: 'BAD_RESPONSE',
    requests: 1,
    says: /HTML/,
  },
  { name: 'empty', reply: () => ({ body: '' }), code: 'BAD_RESPONSE', requests: 1, says: /empty/ },
  {
    name: 'no-json',
    reply: ({ token }) => ({ body: `denied for ${token}` }),
    code: 'BAD_RESPONSE',
    requests: 1,
    says: /not JSON/,
  },
  {
    name: 'three-failures',
    reply: (asked, count) => (count <= 3 ? refusal(500)(asked) : HEALTHY(asked)),
    code: null,
    requests: 5,
    retries: 3,
  },
  { name: 'broken', reply: refusal(503), code: 'SERVER_ERROR', requests: 4, retries: 3, says: /503/ },
  {
    name: 'cut-off',
    reply: (asked, count) => ({ ...HEALTHY(asked), breaksOff: count === 1 }),
    code: null,
    requests: 3,
    retries: 1,
  },
  {
    name: 'half-a-body',
    reply: (asked, count) =>
      count === 1 ? { body: JSON.stringify(HEALTHY(asked).body).slice(0, 40) } : HEALTHY(asked),
    code: null,
    requests: 3,
    retries: 1,
  },
  {
    name: 'elsewhere',
    reply: withNext(({ token }) => `http://${token}:x@evil.example/steal?token=${token}&page=2`),
    code: 'LINK_REFUSED',
    requests: 1,
    says: /evil\.example/,
  },
  {
    name: 'other-path',
    reply: withNext(({ token }) => `/api/${token}?page=2`),
    code: 'LINK_REFUSED',
    requests: 1,
  },
  { name: 'no-next', reply: withNext(() => undefined), code: 'LINK_REFUSED', requests: 1 },
  {
    name: 'unsuccessful',
    reply: ({ token }) => ({ body: { success: false, message: `no list for ${token}`, data: [] } }),
    code: 'BAD_RESPONSE',
    requests: 1,
  },
]

const organizations = FAULTS.map(({ name }, index) => organization(name, index + 1))
const workspace = createWorkspace()
let server: ListServer
let ended: Ended

beforeAll(async () => {
  server = await serve((asked) => {
    const index = organizations.findIndex(({ id }) => id === asked.organization)
    const count = server.asked.filter((one) => one.organization === asked.organization).length
    return FAULTS[index]?.reply(asked, count) ?? { status: 418 }
  })
  workspace.configure({ baseUrl: server.url, organizations })
  ended = await workspace.run(['sync', '--log-level', 'trace'])
})

describe('a sync in which organizations fail', () => {
  it.each(FAULTS)(
    'ends $name with $code after $requests requests',
    ({ name, code, requests, retries, says }) => {
      const id = organizations.find((one) => one.name === name)?.id

      const run = workspace.rows(`SELECT * FROM sync_runs WHERE organization_id = '${id}'`)

      expect(run).toEqual([
        expect.objectContaining({
          status: code === null ? 'succeeded' : 'failed',
          error_code: code,
          error_message: code === null ? null : expect.stringMatching(says ?? /./),
          requests,
          retries: retries ?? 0,
        }),
      ])
      expect(server.asked.filter((asked) => asked.organization === id)).toHaveLength(requests)
    },
  )

  it('names the organization, the list and the page in each message', () => {
    const messages = workspace.rows<{ name: string; message: string }>(`
      SELECT name, error_message AS message
      FROM sync_runs
      JOIN organizations ON organizations.id = organization_id
      WHERE error_code IS NOT NULL
    `)

    expect(messages.length).toBeGreaterThan(10)
    for (const { name, message } of messages) expect(message).toContain(`${name} orders page 1`)
  })

  it('exits with 3 because of those to which access is refused', () => {
    expect(ended).toMatchObject({ code: 3, stdout: '' })
  })

  it('mirrors the lists of the others', () => {
    const whole = FAULTS.filter(({ code }) => code === null).map(({ name }) => ({
      organization: name,
      rows: 4,
    }))

    expect(workspace.rows('SELECT organization, rows FROM sync_status WHERE rows > 0')).toEqual(
      expect.arrayContaining(whole),
    )
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4 * whole.length)
  })

  it('writes nothing but JSON to the log, and one end for each job', () => {
    const lines = ended.stderr.trimEnd().split('\n')

    expect(ended.logs).toHaveLength(lines.length)
    const finished = ended.logs.filter(({ msg }) => msg === 'run finished')
    expect(finished.map((line) => String(line.organization)).toSorted()).toEqual(
      FAULTS.map(({ name }) => name).toSorted(),
    )
    expect(finished.find((line) => line.organization === 'moved')).toMatchObject({
      level: 'error',
      status: 'failed',
      error_code: 'UNEXPECTED_STATUS',
    })
  })

  it('holds nobody, since no token was refused', () => {
    expect(workspace.rows('SELECT * FROM organizations WHERE held_since IS NOT NULL')).toEqual([])
  })

  it('is asked for again by the next run', async () => {
    const before = server.asked.length

    const again = await workspace.run(['sync', '--org', 'not-found', '--org', 'forbidden'])

    expect(again.code).toBe(3)
    expect(server.asked.length - before).toBe(2)
  })
})

describe('the exit code of a command whose jobs end differently', () => {
  const short = organization('short', 1)
  const forbidden = organization('forbidden', 2)
  const moved = organization('moved', 3)
  const healthy = organization('healthy', 4)

  it.each([
    [['healthy'], 0],
    [['healthy', 'moved'], 1],
    [['moved', 'short'], 5],
    [['short', 'forbidden', 'moved'], 3],
  ])('of %j is %i', async (names, code) => {
    const api = await serve((asked) => {
      // It ends before the total that it tells itself, however often it is read.
      if (asked.organization === short.id) return pageOf(ITEMS, asked, { total: 9 })
      if (asked.organization === healthy.id) return HEALTHY(asked)
      return refusal(asked.organization === forbidden.id ? 403 : 302)(asked)
    })
    const place = createWorkspace({
      baseUrl: api.url,
      organizations: [short, forbidden, moved, healthy],
    })

    const sync = await place.run(['sync', ...names.flatMap((name) => ['--org', name])])

    expect(sync.code).toBe(code)
  })
})

describe('a server that is not there', () => {
  it('is tried as often as the configuration says, and fails the job with NETWORK', async () => {
    const api = await serve(() => ({}))
    await api.close()
    const place = createWorkspace({ baseUrl: api.url, organizations: [organization('acme', 1)] })

    const sync = await place.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(place.rows('SELECT error_code, requests, retries, pages FROM sync_runs')).toEqual([
      { error_code: 'NETWORK', requests: 4, retries: 3, pages: 0 },
    ])
  })

  it('fails the job with TIMEOUT when it never answers', async () => {
    const api = await serve(() => new Promise(() => {}))
    const place = createWorkspace({
      baseUrl: '',
      api: { baseUrl: api.url, timeout: '50ms' },
      organizations: [organization('acme', 1)],
    })

    const sync = await place.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(place.value('SELECT error_code FROM sync_runs')).toBe('TIMEOUT')
  })
})
