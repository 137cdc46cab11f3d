import { beforeAll, describe, expect, it } from 'vitest'
import { type Fault, items } from '../helpers/list-server.ts'
import type { Ended } from '../helpers/processes.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'
import { changed, next, status, text } from './answers.ts'
import * as connection from './connection.ts'
import { type FaultServer, type Rule, serveFaults } from './fault-server.ts'
import * as flood from './flood.ts'

// One sync of many organizations, to each of which something else happens on the third of its four pages; then another,
// to which nothing does. Wherever it can, the server echoes the token, which must show nowhere: each workspace looks for it.

/** As the workspaces are configured. */
const ATTEMPTS = 4

interface Case {
  /** Its organization, too. */
  name: string
  fault: Fault
  /** How often it happens; without it for ever. */
  times?: number
  code: string | null
  /** Requests for the page on which it happens. */
  tries: number
  says?: RegExp
}

/** Faults that pass by themselves: once, and for ever. */
function passing(name: string, fault: Fault, code: string, says: RegExp): Case[] {
  return [
    { name: `${name}-once`, fault, times: 1, code: null, tries: 2 },
    { name, fault, code, tries: ATTEMPTS, says },
  ]
}

function final(name: string, fault: Fault, code: string, says: RegExp): Case {
  return { name, fault, code, tries: 1, says }
}

const NETWORK = /the network failed \([A-Z_]+\) at http:\/\/127\.0\.0\.1:/
const BREAKS_OFF = /the answer breaks off after \d+ bytes/
const HALF_GZIP = /the compressed answer breaks off/
const NO_BODY = /^[^:]*: the server failed \(503\)$/

/** One of each kind: what else may come is told of the parts that read it, in test/api. */
const CASES: Case[] = [
  { name: 'healthy', fault: (response, body) => response.end(body), code: null, tries: 1 },
  ...passing('reset', connection.reset, 'NETWORK', NETWORK),
  ...passing('two-words-on-the-length', connection.smuggle, 'NETWORK', NETWORK),
  ...passing('half-the-text', connection.halfTheText, 'BAD_RESPONSE', BREAKS_OFF),
  ...passing('gzip-breaks-off', flood.gzipBreaksOff, 'BAD_RESPONSE', HALF_GZIP),
  ...passing('status-500', status(500), 'SERVER_ERROR', /the server failed \(500\)/),
  ...passing('503-without-end', endless(503), 'SERVER_ERROR', NO_BODY),
  { name: 'all-tries-but-the-last', fault: status(500), times: ATTEMPTS - 1, code: null, tries: ATTEMPTS },
  { name: '503-with-a-time', fault: status(503, { 'retry-after': '1' }), times: 1, code: null, tries: 2 },
  final('bad-request', status(400), 'BAD_REQUEST', /\(400\).*look at the filters/),
  final('forbidden', status(403), 'FORBIDDEN', /\(403\)/),
  // Either of the two may be wrong.
  final('not-found', status(404), 'ORGANIZATION_NOT_FOUND', /\(404\).*http:\/\/127\.0\.0\.1:/),
  final('moved', status(302), 'UNEXPECTED_STATUS', /redirects \(302\), which is never followed/),
  final('empty', text(''), 'BAD_RESPONSE', /the answer is empty/),
  final('unknown-encoding', text('[1]'.repeat(9), { 'content-encoding': 'gzip, aes' }), 'BAD_RESPONSE', /./),
  final('html', text(whoops), 'BAD_RESPONSE', /HTML.*Whoops/),
  final('unsuccessful', changed(unsuccessful), 'BAD_RESPONSE', /"success": false/),
  final('endless-trailers', flood.endlessTrailers, 'BAD_RESPONSE', /endless headers/),
  final('elsewhere', next(elsewhere), 'LINK_REFUSED', /leads to another host, evil\.example/),
]

function whoops(token: string): string {
  return `<html><title>Whoops ${token}</title></html>`
}

function unsuccessful(_page: number, token: string) {
  return { success: false, message: `no list for ${token}` }
}

function elsewhere(page: number, token: string): string {
  return `http://${token}:x@evil.example/steal?token=${token}&page=${page + 1}`
}

function endless(code: number): Fault {
  return (response, body, asked) => {
    response.statusCode = code
    flood.endlessBody(response, body, asked)
  }
}

const FAULTY_PAGE = 3
const organizations = CASES.map(({ name }, index) => organization(name, index + 1))
const script: Rule[] = CASES.map(({ name, fault, times }) => ({
  organization: name,
  page: FAULTY_PAGE,
  fault,
  ...(times === undefined ? {} : { try: Array.from({ length: times }, (_, index) => index + 1) }),
}))
const workspace = createWorkspace()
let server: FaultServer
let ended: Ended

beforeAll(async () => {
  server = await serveFaults(script, { organizations })
  workspace.configure({ baseUrl: server.url, organizations })
  ended = await workspace.run(['sync', '--log-level', 'trace'])
})

function idOf(name: string): string | undefined {
  return organizations.find((one) => one.name === name)?.id
}

describe('a sync to which everything happens', () => {
  it.each(CASES)('ends $name with $code after $tries tries of the page', ({ name, code, tries, says }) => {
    const run = workspace.rows(`SELECT * FROM sync_runs WHERE organization_id = '${idOf(name)}'`)
    const walk = workspace.rows(
      `SELECT status, next_page FROM sync_walks WHERE organization_id = '${idOf(name)}'`,
    )
    const asked = server.pagesOf(name).slice(0, code === null ? tries + 4 : tries + 2)

    expect(run).toEqual([
      expect.objectContaining({
        status: code === null ? 'succeeded' : 'failed',
        error_code: code,
        error_message: code === null ? null : expect.stringMatching(says ?? /./),
        requests: asked.length,
        retries: tries - 1,
        pages: code === null ? 5 : 2,
      }),
    ])
    expect(asked).toEqual([
      1,
      2,
      ...Array.from({ length: tries }, () => FAULTY_PAGE),
      // Any still list is asked for one of its pages again.
      ...(code === null ? [4, 1] : []),
    ])
    expect(walk).toEqual(
      code === null
        ? [{ status: 'complete', next_page: null }]
        : [{ status: 'open', next_page: FAULTY_PAGE }],
    )
  })

  it('names the organization, the list and the page in each message', () => {
    const messages = workspace.rows<{ name: string; message: string }>(`
      SELECT name, error_message AS message
      FROM sync_runs
      JOIN organizations ON organizations.id = organization_id
      WHERE error_code IS NOT NULL
    `)

    expect(messages).toHaveLength(CASES.filter(({ code }) => code !== null).length)
    for (const { name, message } of messages)
      expect(message).toContain(`${name} orders page ${FAULTY_PAGE}: `)
  })

  it('tells each retry with its reason', () => {
    const retries = ended.logs.filter((line) => line.organization === 'status-500' && 'delay_ms' in line)

    expect(retries).toHaveLength(ATTEMPTS - 1)
    expect(retries[0]).toMatchObject({
      level: 'warn',
      msg: expect.stringMatching(/page 3.*500.*trying again/),
    })
  })

  it('asks no sooner than the server wants', () => {
    const times = server.asked
      .filter(({ organization: id, page }) => id === idOf('503-with-a-time') && page === FAULTY_PAGE)
      .map(({ at }) => at)

    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(1000)
  })

  it('exits with 3 because of those to which access is refused', () => {
    expect(ended).toMatchObject({ code: 3, stdout: '' })
  })

  it('writes nothing but JSON to the log, and one end for each job', () => {
    const lines = ended.stderr.trimEnd().split('\n')

    expect(ended.logs).toHaveLength(lines.length)
    const finished = ended.logs.filter(({ event }) => event === 'run_finished')
    expect(finished.map((line) => String(line.organization)).toSorted()).toEqual(
      CASES.map(({ name }) => name).toSorted(),
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

  it('is followed by one that goes on from each checkpoint, and has every item once', async () => {
    const before = new Map(CASES.map(({ name }) => [name, server.pagesOf(name).length]))
    server.heal()

    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    for (const { name, code } of CASES) {
      // The last page that was written is asked for again, to see whether the list has moved.
      const pages = code === null ? [1, 2, 3, 4, 1] : [2, 3, 4, 1]
      expect([name, ...server.pagesOf(name).slice(before.get(name))]).toEqual([name, ...pages])
    }
    const ids = items(8).map(({ id }) => id)
    expect(
      workspace.rows('SELECT _organization_id AS organization, id FROM orders ORDER BY organization, id'),
    ).toEqual(organizations.flatMap(({ id: one }) => ids.map((id) => ({ organization: one, id }))))
    expect(workspace.rows("SELECT * FROM sync_walks WHERE coverage IS NOT 'steady'")).toEqual([])
  })
})
