import { expect, it } from 'vitest'
import { alarmText, statusText } from '../../src/report/status-text.ts'
import type { StatusFacts } from '../../src/report/status.ts'
import {
  at,
  daemon,
  failedBy,
  HELD,
  listOf,
  NEVER,
  NOW,
  RUNNING,
  statusOf,
  TOKEN,
} from '../helpers/status.ts'

function textOf(lists: readonly ReturnType<typeof listOf>[], more: Partial<StatusFacts> = {}): string {
  return statusText(statusOf(lists, more), 'admin-mirror query')
}

it('the text of status has the verdict, each cause once, a line a list with its notes, who works on the mirror, and each step once', () => {
  const away = 'page 3: the network failed (ECONNREFUSED)'
  const lists = [
    listOf('acme', { ...RUNNING, fresh_as_of: at(2) }),
    listOf('globex', failedBy('NETWORK', `globex orders ${away}`)),
    listOf('initech', failedBy('NETWORK', `initech orders ${away}`)),
    listOf('hooli', TOKEN, { tokenPlace: '/run/secrets/hooli' }),
    listOf('umbrella', { ...NEVER, rows: 0, running: true }),
  ]

  expect(textOf(lists, { unpublished: 'EROFS' }))
    .toBe(`3 of 5 lists need attention (1 held for a refused token, 2 failed: the server could not be reached); the published file is older than the mirror
hooli orders: token refused since ${at(9)} (9 minutes): HTTP 401
globex orders, initech orders: failing since ${at(30)} (30 minutes): NETWORK: the network failed (ECONNREFUSED)

acme orders                       1,500 rows  being read          new rows as of 2 minutes ago, all as of 5 minutes ago
    running since ${at(1)}: page 8, 14 of 20 items seen (70 %), about 30 seconds left
globex orders                     1,500 rows  failing             as of 5 minutes ago; next walk in 10 minutes
initech orders                    1,500 rows  failing             as of 5 minutes ago; next walk in 10 minutes
hooli orders                      1,500 rows  token refused       as of 5 minutes ago
umbrella orders                       0 rows  first reading       never read
    about to begin
note: nothing could be published: EROFS

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: mend why nothing is published, as the note says: it is tried again after the next runs
      put in a new token (/run/secrets/hooli), or if the old one is valid again: admin-mirror resume --org hooli
      wait: it is tried again by itself
`)
})

it.each<[string, Partial<StatusFacts>, Parameters<typeof listOf>[1], end: string]>([
  [
    'where all is well',
    {},
    {},
    `daemon: runs since ${at(90)} (90 minutes), process 1\nnext: nothing to do; ask the mirror with admin-mirror query "SELECT * FROM sync_status"\n`,
  ],
  [
    'of a list that is read for the first time by a command',
    { daemons: [] },
    { ...RUNNING, as_of: null },
    'daemon: none runs; start it by its service or admin-mirror start\nnext: nothing to do; ask the mirror with admin-mirror query "SELECT * FROM sync_status"\n',
  ],
  [
    'of two daemons, one of which died',
    { daemons: [daemon(1), daemon(2, false)] },
    NEVER,
    `daemon: runs since ${at(90)} (90 minutes), process 1; process 2, running since ${at(90)} (90 minutes), died without being stopped\nnext: admin-mirror sync --org acme\n`,
  ],
  [
    'of a full disk',
    { unusable: 'the disk is full', daemons: [] },
    {},
    'daemon: not known: while nothing can be written, none can say that it runs\nnext: mend what the first line says: a start that runs goes on by itself then, and what the mirror holds can be queried meanwhile\n',
  ],
])('it ends with who works on the mirror, and what to do: %s', (_, facts, changed, end) => {
  expect(textOf([listOf('acme', changed)], facts).split('\nmirror: /data/mirror.db\n')[1]).toBe(end)
})

it('of a file alone says neither that it is well nor that a daemon is missing', () => {
  const text = textOf([listOf('acme', { running: null }, { plan: null })], { config: null, daemons: [] })

  expect(text).toContain('1 of 1 lists were read whole\n')
  expect(text).toContain('daemon: none is known to use this file\n')
})

it('of many lists names four that have one cause', () => {
  const many = Array.from({ length: 80 }, (_, index) => listOf(`org-${index}`, failedBy()))

  expect(textOf(many)).toMatch(
    `\norg-0 orders, org-1 orders, org-2 orders, org-3 orders, ... and 76 more lists: failing since ${at(30)} (30 minutes): NETWORK: away\n`,
  )
})

it('a monitor is told each cause once and what to do, without what a server said', () => {
  const status = statusOf([
    listOf('acme'),
    ...['globex', 'initech'].map((name) => listOf(name, failedBy('FORBIDDEN', 'Mr Item'))),
    listOf('hooli', {}, { plan: { schedule: '* * * * *', nextRunAt: null, dueAt: NOW - 600_000 } }),
    listOf('tyrell', failedBy('OF_LATER', 'Mr Item')),
    listOf('umbrella', { untrusted: 'Mr Item' }),
    listOf('wonka', HELD),
    listOf('xena', { ...HELD, ...failedBy('FORBIDDEN', 'Mr Item') }),
  ])

  expect(alarmText(status).split('\n')).toEqual([
    '6 of 8 lists need attention (2 with removals held back, 3 failed, 1 overdue)',
    'wonka orders: removals held back: REMOVALS_HELD (removals are held back: somebody has to decide)',
    'xena orders: removals held back: REMOVALS_HELD (removals are held back: somebody has to decide); failing: FORBIDDEN (the token has no access to this organization)',
    `globex orders, initech orders: failing since ${at(30)} (30 minutes): FORBIDDEN (the token has no access to this organization)`,
    `tyrell orders: failing since ${at(30)} (30 minutes): OF_LATER`,
    `hooli orders: overdue since ${at(10)} (10 minutes): by its schedule (* * * * *) it should have been read`,
    expect.stringMatching(/^next: see with .* --org wonka --collection orders --accept-removals$/),
    'next: look at the error, then: admin-mirror sync --org xena --org globex --org initech --org tyrell',
    'next: admin-mirror sync --org hooli',
  ])
})
