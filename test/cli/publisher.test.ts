import fs from 'node:fs'
import path from 'node:path'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createPublisher } from '../../src/cli/publisher.ts'
import { publishFailure } from '../../src/store/core/publication.ts'
import { runRule, SQLITE } from '../../src/store/sqlite/driver.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'
import { begin as beginWalk } from '../store/stage.ts'

// When a file is published. What it holds: test/stories/published.test.ts; the decision as a table: test/store/core/publication.test.ts.

const MINUTE = 60_000
const HOUR = 3_600_000

/** A mirror of one order, read whole and published by a service whose clock goes on as the test says. */
async function createScene({ isRead = true } = {}) {
  const mirror = openTestMirror()
  const target = path.join(tempFolder(), 'copy.db')
  let passed = 0
  const lines: { event: string; msg: string }[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number])
  let look: (() => unknown) | null = null
  const begin = (isService: boolean, hasForgotten = false) =>
    createPublisher({
      config: { database: mirror.file, publish: target, publishEvery: 5 * MINUTE, publishMode: 0o644 },
      runtime: {
        processName: 'a publisher',
        now: () => Date.now() + passed,
        every: (_ms, task) => {
          look = task
          return () => {}
        },
        signal: new AbortController().signal,
      },
      logger: pino({ level: 'debug' }, { write }),
      mirror: {
        read: async (rule) => runRule(mirror.connection, rule(SQLITE)),
        write: async (rule) => runRule(mirror.connection, rule()),
      },
      isService,
      hasForgotten,
    })
  const walk = await beginWalk(mirror)
  await walk.page('{"id":1,"total":1}')
  if (isRead) await walk.close()

  /** What is written once so much time has passed. */
  async function later(ms: number): Promise<string[]> {
    passed += ms
    lines.length = 0
    // What is written is looked at once more.
    for (let count = 0; count < 3; count++) await look?.()
    return lines.map(({ event }) => event)
  }

  const publisher = begin(true)
  expect(await later(0)).toEqual(isRead ? ['published'] : [])
  return {
    mirror,
    target,
    /** The names in the folder of the published file. */
    found: () => fs.readdirSync(path.dirname(target)).toSorted(),
    begin,
    later,
    lines,
    failure: () => runRule(mirror.connection, publishFailure()),
    /** Changes an order, and prunes the line of a run that had changed one. */
    async change() {
      await walk.page('{"id":1,"total":2}')
      mirror.connection.exec('UPDATE sync_runs SET rows_changed = 0')
      publisher?.note()
    },
  }
}

it('a service makes no file before a run has ended, whether it read its list whole or not', async () => {
  const { begin, later, mirror } = await createScene({ isRead: false })

  expect(await later(24 * HOUR)).toEqual([])
  mirror.connection.exec("UPDATE sync_runs SET status = 'failed'")
  begin(true)
  expect(await later(0)).toEqual(['published'])
})

it('a service makes it at most every publishEvery, and writes nothing after it was begun anew, while nothing changed', async () => {
  const { change, begin, later } = await createScene()

  await change()
  expect([await later(4 * MINUTE), await later(MINUTE)]).toEqual([[], ['published']])
  begin(true)
  expect(await later(48 * HOUR)).toEqual([])
})

it.each<[string, (target: string) => void]>([
  ['is gone', (target) => fs.rmSync(target)],
  ['has another mode', (target) => fs.chmodSync(target, 0o600)],
  ['is damaged', (target) => fs.truncateSync(target, 4096)],
])('a service makes a file again that %s', async (_what, spoil) => {
  const { begin, later, target } = await createScene()
  spoil(target)
  begin(true)

  expect(await later(5 * MINUTE)).toEqual(['published'])
  expect(fs.statSync(target).mode & 0o777).toBe(0o644)
})

it('a service warns, and touches nothing where there is another file, until that is gone', async () => {
  const { change, later, target, lines, failure, found } = await createScene()
  fs.writeFileSync(target, 'precious')
  await change()

  expect(await later(5 * MINUTE)).toEqual(['publish_failed'])
  expect(lines.at(-1)?.msg).toMatch(/^nothing was published: .*is not a copy of a mirror/)
  expect(failure()).toMatch(/is not a copy of a mirror/)
  expect([fs.readFileSync(target, 'utf8'), found()]).toEqual(['precious', ['copy.db']])

  fs.rmSync(target)
  expect([await later(4 * MINUTE), await later(MINUTE)]).toEqual([[], ['published']])
  expect(failure()).toBeNull()
})

it('what a killed process left beside the file is deleted once nobody can be at work on it', async () => {
  const { change, later, target, found } = await createScene()
  const [old, young] = ['.copy.db.1-aaaaaaaaaaaa.unfinished', '.copy.db.2-bbbbbbbbbbbb.unfinished']
  for (const name of [old, young]) fs.writeFileSync(path.join(path.dirname(target), name), 'half')
  const begun = new Date(Date.now() - 2 * HOUR)
  fs.utimesSync(path.join(path.dirname(target), old), begun, begun)
  await change()

  expect(await later(5 * MINUTE)).toEqual(['published'])
  expect(found()).toEqual([young, 'copy.db'])
})

it('a command publishes at its end what has changed, however young the file is; one that has forgotten something, in any case', async () => {
  const { change, begin, target } = await createScene()
  const isMade = async (hasForgotten = false) => {
    const { ino } = fs.statSync(target)
    await begin(false, hasForgotten)?.close()
    return fs.statSync(target).ino !== ino
  }

  expect(await isMade()).toBe(false)
  expect(await isMade(true)).toBe(true)
  await change()
  expect(await isMade()).toBe(true)
})
