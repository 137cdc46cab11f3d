import fs from 'node:fs'
import path from 'node:path'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createPublisher } from '../../src/cli/publisher.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

/** A service that publishes, its clock, and copies that end when the test says so. */
function createScene() {
  const target = path.join(tempFolder(), 'copy.db')
  let now = 1_000_000
  const looks: (() => void)[] = []
  const copies: (() => void)[] = []
  const publisher = createPublisher({
    config: { publish: target, publishEvery: 1000, publishMode: 0o644 },
    runtime: {
      now: () => now,
      every: (_ms, task) => {
        looks.push(task)
        return () => {}
      },
      signal: new AbortController().signal,
    },
    logger: pino({ enabled: false }),
    publishing: {
      lastNews: async () => null,
      publish: () =>
        new Promise((resolve) => {
          copies.push(() => resolve({ rows: 1, bytes: 1, isPlaced: true }))
        }),
    },
    isService: true,
  })
  return {
    publisher,
    copies,
    pass: (ms: number) => {
      now += ms
    },
    look: () => looks[0]?.(),
    /** The copy under way shows this moment of the mirror, and is put in place. */
    async place(shown: number) {
      fs.writeFileSync(target, '')
      fs.utimesSync(target, shown / 1000, shown / 1000)
      copies.at(-1)?.()
      await new Promise((resolve) => setImmediate(resolve))
    },
    now: () => now,
  }
}

/** Begins a copy, and has news come before the moment that it shows. Returns that moment. */
function beginCopy({ publisher, pass, look, now }: ReturnType<typeof createScene>): number {
  publisher.noteNews()
  look()
  pass(10)
  publisher.noteNews()
  pass(10)
  return now()
}

describe('a service that publishes', () => {
  it('goes on after news that came while a copy was begun', async () => {
    const scene = createScene()
    const { publisher, copies, pass, look, place } = scene
    const shown = beginCopy(scene)
    pass(500)
    await place(shown)
    pass(5000)
    look()
    expect(copies).toHaveLength(1)

    publisher.noteNews()
    look()

    expect(copies).toHaveLength(2)
  })

  it('makes another copy of news that came after the moment that the copy under way shows', async () => {
    const scene = createScene()
    const { publisher, copies, pass, look, place } = scene
    const shown = beginCopy(scene)
    pass(10)
    publisher.noteNews()
    await place(shown)
    pass(5000)

    look()

    expect(copies).toHaveLength(2)
  })
})
