import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createFilePublishing } from '../../src/cli/file/open.ts'
import { createPublisher } from '../../src/cli/publisher.ts'
import {
  type HashedFile,
  hashFile,
  originIn,
  writeFreshness,
} from '../../src/store/sqlite/publish/numbers.ts'
import { makeCopy } from '../../src/store/sqlite/publish/publish.ts'
import type { Walk } from '../../src/sync/store.ts'
import { jobOf } from '../helpers/jobs.ts'
import { lockName } from '../helpers/lock-name.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { beginTestWalk, complete, openTestMirror } from '../helpers/test-mirror.ts'

const MINUTE = 60_000
const DAY = 86_400_000

/** A mirror of one order, read whole and published by a service whose clock goes on as the test says. */
async function createScene({ isRead = true } = {}) {
  const mirror = openTestMirror()
  const target = path.join(tempFolder(), 'copy.db')
  let passed = 0
  const now = () => Date.now() + passed
  const lines: { event: string }[] = []
  let looks: (() => unknown)[] = []
  const identity = { pid: 4711, randomHex: () => randomBytes(16).toString('hex') }
  const file = createFilePublishing(mirror.connection, mirror.file, identity)
  const other = { publishes: false }
  const begin = (isService: boolean) =>
    createPublisher({
      target,
      config: { publishEvery: 5 * MINUTE, publishMode: 0o644 },
      runtime: {
        ...identity,
        now,
        every: (_ms, task) => {
          looks = [task]
          return () => {}
        },
        signal: new AbortController().signal,
      },
      logger: pino(
        { level: 'debug' },
        { write: (line: string) => void lines.push(JSON.parse(line) as { event: string }) },
      ),
      publishing: {
        ...file,
        alone: async (task) => !other.publishes && file.alone(task),
        // In this process, so that the file is of the time of the test.
        copy: async ({ contents, begunAt, ...task }) => {
          const published = { version: '1', origin: originIn(mirror.connection), contents, begunAt }
          return makeCopy({ ...task, mirror: mirror.file, published }, lockName(), now)
        },
      },
      isService,
    })
  const walk = await beginTestWalk(mirror, jobOf())
  await walk.saveItems('{"id":1,"total":1}')
  if (isRead) await complete(mirror, jobOf(), walk.walk)

  /** What is written once so much time has passed. */
  async function later(ms: number): Promise<string[]> {
    passed += ms
    lines.length = 0
    // What is written is looked at once more.
    for (let look = 0; look < 3; look++) for (const task of looks) await task()
    return lines.map(({ event }) => event)
  }

  const service = begin(true)
  expect(await later(0)).toEqual(isRead ? ['published'] : [])
  return {
    mirror,
    target,
    begin,
    later,
    lines,
    other,
    save: walk.saveItems,
    publisher: service,
    /** A refresh that found nothing new. */
    freshen(asOf: string) {
      mirror.connection.prepare('UPDATE sync_jobs SET fresh_as_of = ?').run(asOf)
      service.noteRefresh()
    },
    numbers: () => JSON.parse(fs.readFileSync(`${target}.json`, 'utf8')) as Numbers,
    inode: () => fs.statSync(target).ino,
    /** NAME.json is that of the file, and says how fresh it is. */
    expectTold(asOf: string) {
      const { sha256, jobs } = JSON.parse(fs.readFileSync(`${target}.json`, 'utf8')) as Numbers
      expect(sha256).toBe(createHash('sha256').update(fs.readFileSync(target)).digest('hex'))
      expect(jobs[0]?.fresh_as_of).toBe(asOf)
    },
  }
}

interface Numbers {
  sha256: string
  contents: string
  created_at: string
  current_at: string
  jobs: { fresh_as_of: string }[]
}

const [ONE, TWO] = ['2099-01-01T01:00:00.000Z', '2099-01-01T02:00:00.000Z']

describe('a service that publishes', () => {
  it('makes no file while no list was read to its end', async () => {
    const { later, target } = await createScene({ isRead: false })

    expect(await later(DAY)).toEqual([])
    expect(fs.existsSync(target)).toBe(false)
  })

  it('writes the numbers alone while only freshness changes, and the file once it is a day old', async () => {
    const { freshen, later, numbers, inode, expectTold } = await createScene()
    const [before, made] = [inode(), numbers()]

    freshen(ONE)
    expect(await later(MINUTE)).toEqual(['published_freshness'])
    expect(inode()).toBe(before)
    const { current_at: current, jobs: _, ...others } = numbers()
    expect(made).toMatchObject(others)
    expect(Date.parse(current)).toBeGreaterThanOrEqual(Date.parse(made.current_at) + MINUTE)
    expectTold(ONE)

    freshen(TWO)
    expect(await later(DAY)).toEqual(['published'])
    expect(inode()).not.toBe(before)
    expectTold(TWO)
  })

  it('waits nine times as long as making the file took, also where another process made it', async () => {
    const { save, begin, later, target, numbers } = await createScene()
    // Ten minutes.
    fs.writeFileSync(`${target}.json`, JSON.stringify({ ...numbers(), duration_ms: 600_000 }))
    await save('{"id":2,"total":2}')

    begin(true)

    expect(await later(99 * MINUTE)).toEqual([])
    expect(await later(MINUTE)).toEqual(['published'])
  })

  it('does not wait for a time that a clock which was set back makes far', async () => {
    const { save, publisher, later } = await createScene()
    await save('{"id":2,"total":2}')
    publisher.noteRefresh()
    expect(await later(MINUTE)).toEqual([])

    expect(await later(-DAY)).toEqual(['published'])
  })

  it('writes nothing after it was begun anew, while nothing changed', async () => {
    const { begin, later, inode, numbers } = await createScene()
    const before = [inode(), numbers()]

    begin(true)

    expect(await later(2 * DAY)).toEqual([])
    expect([inode(), numbers()]).toEqual(before)
  })

  it.each<[string, (target: string, former: string) => void]>([
    // As a process leaves it that is killed between the two renames.
    ['of the file before', (target, former) => fs.writeFileSync(`${target}.json`, former)],
    ['that are gone', (target) => fs.rmSync(`${target}.json`)],
    ['that name another file', (target) => fs.writeFileSync(`${target}.json`, renamed(target))],
    ['of a file that was written to', (target) => fs.appendFileSync(target, '-')],
  ])('makes the file again where there are numbers %s', async (_what, spoil) => {
    const { save, publisher, begin, later, target, freshen, expectTold } = await createScene()
    const former = fs.readFileSync(`${target}.json`, 'utf8')
    await save('{"id":2,"total":2}')
    publisher.noteRefresh()
    expect(await later(5 * MINUTE)).toEqual(['published'])
    spoil(target, former)

    begin(true)
    freshen(ONE)

    expect(await later(5 * MINUTE)).toEqual(['published'])
    expectTold(ONE)
  })

  it('publishes by itself what another worker had begun to, and did not', async () => {
    const { save, publisher, later, other } = await createScene()
    await save('{"id":2,"total":2}')
    publisher.noteRefresh()
    other.publishes = true
    await later(5 * MINUTE)

    other.publishes = false
    expect(await later(5 * MINUTE)).toEqual(['published'])
  })

  it('waits while another worker publishes, and leaves what that one has done', async () => {
    const { save, publisher, later, other, begin } = await createScene()
    await save('{"id":2,"total":2}')
    publisher.noteRefresh()
    other.publishes = true
    expect(await later(5 * MINUTE)).toEqual(['publish_elsewhere'])

    other.publishes = false
    expect(await later(4 * MINUTE)).toEqual([])
    const command = begin(false)
    command.noteRefresh()
    await command.finish()

    expect(await later(5 * MINUTE)).toEqual([])
  })

  it.each<[string, (target: string) => void, RegExp]>([
    [
      'a file of something else',
      (target) => fs.writeFileSync(target, 'precious'),
      /is not a copy of a mirror/,
    ],
    [
      'numbers of something else',
      (target) => fs.writeFileSync(`${target}.json`, '{"name":"my-package"}'),
      /not written by this program/,
    ],
    [
      "somebody else's sum of a file",
      (target) => fs.writeFileSync(`${target}.json`, '{"name":"my-file","sha256":"0123"}'),
      /not written by this program/,
    ],
  ])('warns, and touches nothing where there is %s, until that is gone', async (_what, put, reason) => {
    const { save, publisher, later, target, lines } = await createScene()
    put(target)
    const names = () => fs.readdirSync(path.dirname(target)).toSorted()
    const before = names()
    await save('{"id":2,"total":2}')
    publisher.noteRefresh()

    expect(await later(5 * MINUTE)).toEqual(['publish_failed'])
    expect(lines.at(-1)).toMatchObject({ level: 40, reason: expect.stringMatching(reason) })
    expect(names()).toEqual(before)

    for (const file of [target, `${target}.json`]) fs.rmSync(file)
    expect(await later(4 * MINUTE)).toEqual([])
    expect(await later(MINUTE)).toEqual(['published'])
  })
})

describe('a command that publishes', () => {
  it('does so at its end, however young the file is; the numbers alone where only freshness changed', async () => {
    const { save, freshen, begin, later, expectTold, inode } = await createScene()
    const before = inode()
    const end = async () => {
      const command = begin(false)
      command.note([{ walk: { kind: 'full' } as Walk, error: null }])
      await command.finish()
      await command.close()
    }

    freshen(ONE)
    await end()
    expectTold(ONE)
    expect(inode()).toBe(before)

    await save('{"id":2,"total":2}')
    freshen(TWO)
    await end()
    expectTold(TWO)
    expect(inode()).not.toBe(before)
    expect(await later(DAY)).toEqual([])
  })
})

it('leaves numbers as they are where the file is replaced meanwhile', async () => {
  const { target, numbers, mirror } = await createScene()
  const hashed = await hashFile(target, new AbortController().signal)
  const before = numbers()
  fs.copyFileSync(target, `${target}.new`)
  fs.renameSync(`${target}.new`, target)
  const state = { contents: before.contents, jobs: [] }

  const isWritten = writeFreshness(hashed as HashedFile, state, mirror.clock.now(), lockName())

  expect(isWritten).toBe(false)
  expect(numbers()).toEqual(before)
  expect(fs.readdirSync(path.dirname(target)).toSorted()).toEqual(['copy.db', 'copy.db.json'])
})

function renamed(target: string): string {
  const numbers = JSON.parse(fs.readFileSync(`${target}.json`, 'utf8')) as Numbers
  return JSON.stringify({ ...numbers, sha256: '0'.repeat(64) })
}
