import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Death } from '../helpers/deaths.ts'
import type { Asked, Reply } from '../helpers/list-server.ts'
import type { Workspace } from '../helpers/workspace.ts'
import {
  type AfterDeath,
  type CrashScene,
  copyOf,
  createCrashStory,
  endsOf,
  expectOneReading,
  expectWhole,
  limited,
  someOf,
} from './crash-scene.ts'

// A first sync dies at every moment that leaves other files, and the same command is typed again; one whose token is refused dies at some
// of these moments. Two are killed for comparison. With LONG=1 all of them; SEED=2 chooses others. Throttled syncs, those that read a list
// twice, and those that die again: the histories of test/simulation.

const REFUSED: Reply = { status: 401, body: {} }

function refusedOnce(asked: Asked, before: readonly number[]): Reply {
  return asked.page === 3 && !before.includes(3) ? REFUSED : limited(asked, before)
}

interface Scene extends CrashScene {
  /** How many requests it takes where nobody dies. */
  requests: number
  /** How many different deaths it has at least. */
  least: number
  /** How many of them are tried; all, where nothing is given. */
  tried?: number
}

const SCENES: [name: string, scene: Scene][] = [
  ['that makes the mirror and its tables', { command: ['sync'], requests: 6, least: 20 }],
  [
    'whose token is refused once',
    { command: ['sync'], reply: refusedOnce, requests: 7, isFromRequest: true, least: 7, tried: 3 },
  ],
]

/** Of a walk that begins when the list is read: each page, and up to two again. */
const MOST_OF_A_FURTHER = 7

/** That the processes read the list once among them, but for three requests of each death at most, or began to read it again. */
function expectGoneOn({ lives, workspace }: AfterDeath, { requests }: Scene): void {
  const { walks, runs } = endsOf(workspace)
  expect(walks).toEqual(walks.map(() => 'complete'))
  expect(runs.at(-1)).toBe('succeeded')
  const further = (walks.length - 1) * MOST_OF_A_FURTHER
  expect(lives.flat().length, JSON.stringify(lives)).toBeLessThanOrEqual(
    requests + further + 3 * (lives.length - 1),
  )
  if (walks.length === 1 && requests === 6) expectOneReading(lives, 5)
  expect(workspace.value('SELECT count(*) FROM organizations WHERE held_since IS NOT NULL')).toBe(0)
}

/** Before the first request there is nothing to compare, or not even a table. */
const isCommit = ({ what, mark }: Death) => what === 'COMMIT' && mark > 0

/** What a death decides, without what is another each time. */
function stateOf(workspace: Workspace): unknown {
  const { rows, close } = copyOf(workspace)
  const state = {
    tables: rows('SELECT name FROM sqlite_schema ORDER BY 1'),
    walks: rows('SELECT status, next_page, pages, rows_seen FROM sync_walks'),
    runs: rows('SELECT status, pages, requests FROM sync_runs'),
    jobs: rows('SELECT rows, owner IS NULL AS free FROM sync_jobs'),
    pages: rows('SELECT page, why, keys FROM sync_pages'),
    counts: rows('SELECT rows_added, refresh IS NULL FROM sync_jobs'),
    held: rows('SELECT held_reason FROM organizations'),
    locks: fs.readdirSync(`${workspace.mirror}-owners`).length,
  }
  close()
  return state
}

describe.each(SCENES)('a sync %s', async (_name, scene) => {
  const story = await createCrashStory(scene)

  it(`dies in ${scene.least} ways at least`, () => {
    expect(story.deaths.length).toBeGreaterThanOrEqual(scene.least)
  })

  it.each(someOf(story.deaths, scene.tried ?? story.deaths.length))(
    'loses nothing, and the next goes on: $place',
    async (death) => {
      const after = await story.goOn(death)

      expectWhole(after.workspace)
      expectGoneOn(after, scene)
    },
  )

  it.each(scene.isFromRequest ? [] : someOf(story.deaths.filter(isCommit), 2))(
    'leaves what a process leaves that is killed there: $place',
    async (death) => {
      const { killed, left } = await story.kill(death)

      expect(stateOf(killed)).toEqual(stateOf(left))
    },
  )
})
