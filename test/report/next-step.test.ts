import { describe, expect, it } from 'vitest'
import { stepText } from '../../src/report/status-text.ts'
import type { ListFacts } from '../../src/report/status.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { at, daemon, failedBy, HELD, listOf, NEVER, statusOf, TOKEN } from '../helpers/status.ts'

const SYNC = 'admin-mirror sync --org acme'
const BACKFILL = 'admin-mirror backfill --org acme --collection orders'
/** Of three runs that stopped at page 1,200. */
const STOPPED = { ...failedBy('SERVER_ERROR'), walk_page: 1200, walk_stops: 2 }
const STOPS = 'page 1,200 failed in 2 runs, and the pages before it did not'
const WAITING = { ...failedBy('RATE_LIMITED'), waiting_until: at(-1) }
/** What to type about removals that are held back, for these lists. */
const removalsOf = (lists: string) =>
  `see with admin-mirror verify ${lists} whether these rows really left the list (it writes nothing); only if they did, delete them: admin-mirror sync ${lists} --accept-removals`
const OPEN_BACKFILL: Partial<StatusRow> = {
  last_run_trigger: 'backfill',
  last_run_status: 'interrupted',
  walk_origin: 'backfill',
  walk_kind: 'partial',
  walk_filters: '{"state":"paid"}',
  walk_first_page: 1,
  walk_page: 3,
}

/** Of a mirror that no daemon serves. */
function stepsOf(...lists: ListFacts[]): string[] {
  return statusOf(lists, { daemons: [] }).next.map(stepText)
}

describe('the next step', () => {
  it.each<[string, Partial<StatusRow>, string | null]>([
    ['never read', NEVER, SYNC],
    [
      'never read, told to wait',
      { ...NEVER, waiting_until: at(-1) },
      `wait until ${at(-1)}, or forget the wait: admin-mirror resume --org acme`,
    ],
    [
      'token refused',
      TOKEN,
      'put in a new token (/run/secrets/acme), or if the old one is valid again: admin-mirror resume --org acme',
    ],
    ['removals held back', HELD, removalsOf('--org acme --collection orders')],
    [
      'removals held back, and failing',
      { ...HELD, ...failedBy('TIMEOUT') },
      `when the API answers again: ${SYNC}`,
    ],
    [
      'unfinished, told to wait',
      { walk_origin: 'sync', waiting_until: at(-1) },
      `wait until ${at(-1)}, or forget the wait: admin-mirror resume --org acme`,
    ],
    ['first reading', { as_of: null, last_run_status: 'running', running: true }, null],
    ['failing, being read', { ...failedBy(), running: true }, 'wait: it is tried again by itself'],
    ['failing without an answer', failedBy('TIMEOUT'), `when the API answers again: ${SYNC}`],
    ['failing otherwise', failedBy('BAD_RESPONSE'), `look at the error, then: ${SYNC}`],
    [
      'failing at one page',
      STOPPED,
      `${STOPS}: until the API mends it, those behind it can be tried with: ${BACKFILL} --from-page 1201`,
    ],
    ['failing at one page twice', { ...STOPPED, walk_stops: 1 }, `when the API answers again: ${SYNC}`],
    [
      'failing at its last page',
      { ...STOPPED, walk_total: 30_000, walk_rows_seen: 29_975, walk_pages: 1199 },
      `when the API answers again: ${SYNC}`,
    ],
    ['write failed', failedBy('DATABASE'), `look at the error, then: ${SYNC}`],
    [
      'failing, told to wait',
      WAITING,
      `wait until ${at(-1)}, or forget the wait: admin-mirror resume --org acme`,
    ],
    [
      'failing, told to wait until yesterday',
      { ...failedBy('RATE_LIMITED'), waiting_until: at(1440) },
      `when the API answers again: ${SYNC}`,
    ],
    [
      'overdue, being read',
      { ...NEVER, last_run_at: at(61), running: true },
      'look at the log of the process that is reading the list: it has written nothing for an hour',
    ],
    ['unfinished: killed', { last_run_status: 'running', running: false }, SYNC],
    ['unfinished: a backfill', OPEN_BACKFILL, `${BACKFILL} --filter state=paid`],
    ['unfinished: a backfill before any sync', { ...OPEN_BACKFILL, as_of: null }, SYNC],
    ['unfinished: a full backfill', { ...OPEN_BACKFILL, walk_kind: 'full' }, BACKFILL],
    [
      'unfinished: a backfill of many words',
      { ...OPEN_BACKFILL, walk_filters: '{"tag[]":["a","it\'s $b"],"q":"\\u001b"}', walk_first_page: 7 },
      `${BACKFILL} --filter 'tag[]=a' --filter 'tag[]=it'\\''s $b' --filter 'q=\\u{1b}' --from-page 7`,
    ],
    ['not configured', { as_of: null, configured: 0 }, null],
  ])('of a list that is: %s', (_, changed, step) => {
    const { next } = statusOf([listOf('acme', changed, { tokenPlace: '/run/secrets/acme' })], {
      daemons: [],
    })

    expect(next.map(stepText)).toEqual(step === null ? [] : [step])
  })

  it.each([
    ['died', { daemons: [daemon(1, false)] }, /admin-mirror start$/],
    ['cannot read its file', { isConfigLost: true }, /^mend the configuration file.*admin-mirror check$/],
  ])('of a daemon that %s is not about a list', (_, facts, step) => {
    expect(statusOf([listOf('acme')], facts).next.map(stepText)).toEqual([expect.stringMatching(step)])
  })

  it('beside a start with an older configuration is to restart it: its token may be the old one, and its times are', () => {
    const daemons = [daemon(7, true, true)]
    const restart = expect.stringMatching(/^restart start \(process 7\)/)

    const { next, jobs } = statusOf([listOf('acme', TOKEN), listOf('beta', NEVER)], { daemons })

    expect(next.map(stepText)).toEqual([restart, 'admin-mirror sync --org beta'])
    expect(jobs.map((job) => job.next_run_at)).toEqual([null, null])
  })
})

describe('the steps of several lists', () => {
  const establishments = { collection: 'establishments' }
  const FOUR = ['a', 'b', 'c', 'd']

  it.each<[string, ListFacts[], string[]]>([
    [
      'are one command for all organizations',
      [listOf('acme', NEVER), listOf('globex', { ...NEVER, ...establishments })],
      ['admin-mirror sync'],
    ],
    [
      'are one command for some of them',
      [listOf('acme', NEVER), listOf('globex'), listOf('initech', NEVER), listOf('acme', NEVER)],
      ['admin-mirror sync --org acme --org initech'],
    ],
    [
      'are one command with what to look at before it',
      [
        listOf('acme', failedBy('BAD_RESPONSE')),
        listOf('acme', { ...establishments, last_run_status: 'interrupted' }),
        listOf('globex'),
      ],
      [`look at the error, then: ${SYNC}`],
    ],
    [
      'lift the brake for no list that does not need it',
      [
        listOf('acme', HELD),
        listOf('acme', { ...HELD, ...establishments }),
        listOf('globex', HELD),
        listOf('hooli', HELD),
      ],
      [
        removalsOf('--org acme --collection orders --collection establishments'),
        removalsOf('--org globex --org hooli --collection orders'),
      ],
    ],
    [
      'are one for all that use a refused token, and resume no other one',
      FOUR.map((name) => listOf(name, TOKEN, { tokenPlace: name === 'd' ? '/its/own' : '/shared' })),
      [
        'put in a new token (/shared), or if the old one is valid again: admin-mirror resume --org a --org b --org c',
        'put in a new token (/its/own), or if the old one is valid again: admin-mirror resume --org d',
      ],
    ],
    [
      'name all that wait, the gravest first, since resume for all would free a refused token',
      [...FOUR.map((name) => listOf(name, WAITING)), listOf('e', TOKEN)],
      [
        'put in a new token, or if the old one is valid again: admin-mirror resume --org e',
        `wait until ${at(-1)}, or forget the wait: admin-mirror resume --org a --org b --org c --org d`,
      ],
    ],
  ])('%s', (_, lists, steps) => {
    expect(stepsOf(...lists)).toEqual(steps)
  })
})
