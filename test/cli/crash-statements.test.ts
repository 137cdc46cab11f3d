import { describe, expect, it } from 'vitest'
import { DIE, SMALL_BATCHES } from '../helpers/planted.ts'
import { countingStatements, statementsTold, TELLING_STATEMENTS } from './counting-statements.ts'
import { createCrashScene, endsOf, expectOneReading, expectWhole, liveAndDie } from './crash-scene.ts'

// A first sync dies behind one of all the statements that write to the mirror. Some of them here; `STATEMENTS=all vitest
// run ...` has it die behind each.

const EVERY = process.env.STATEMENTS === 'all' ? 1 : 23

/** How many statements a first sync takes. */
async function countStatements(): Promise<number> {
  const { sync } = await createCrashScene()
  const { stderr } = await sync(TELLING_STATEMENTS, ...SMALL_BATCHES)
  return statementsTold(stderr)
}

const TOTAL = await countStatements()
const CHOSEN = Array.from({ length: TOTAL }, (_, index) => index + 1).filter((count) => count % EVERY === 0)

describe.concurrent(`a sync of ${TOTAL} statements`, () => {
  it.each(CHOSEN)('that dies behind statement %i loses nothing, and the next goes on', async (count) => {
    const scene = await createCrashScene()

    const lives = await liveAndDie(scene, [
      [`statement ${count}`, countingStatements(`if (count === ${count}) ${DIE}`), ...SMALL_BATCHES],
    ])

    expectWhole(scene.workspace)
    const { walks } = endsOf(scene.workspace)
    expect(walks).toEqual(walks.map(() => 'complete'))
    // A walk that was complete when its process died is followed by another.
    if (walks.length === 1) expectOneReading(lives, 5)
    else expect(lives.map(({ pages }) => pages)).toEqual(walks.map(() => [1, 2, 3, 4, 5, 2]))
  })
})
