// npm run mutation: plants small defects in 60 lines of each room, those of the day, and lists what its tests do not notice.
// ROOM=api takes one room, LINES=300 more of it, SEED=7 those of another day.

import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import process from 'node:process'

/** Lines next to each other that are taken together. */
const PIECE = 12

const { ROOM = 'json', LINES = '60', SEED = String(Math.floor(Date.now() / 86_400_000)) } = process.env

/**
 * The same pieces of a room, `file:first-last`, for the same seed and source.
 * @param {string} room
 */
function sample(room) {
  const pieces = globSync(`src/${room}/**/*.ts`).flatMap((file) => {
    const length = readFileSync(file, 'utf8').split('\n').length
    return Array.from({ length: Math.ceil(length / PIECE) }, (_, at) => {
      return `${file}:${at * PIECE + 1}-${Math.min(length, (at + 1) * PIECE)}`
    })
  })
  const shuffled = pieces.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))
  return shuffled.slice(0, Math.ceil(Number(LINES) / PIECE))
}

/** @param {string} piece */
function rank(piece) {
  return createHash('sha256').update(`${SEED} ${piece}`).digest('hex')
}

// oxlint-disable-next-line import/no-default-export -- Stryker reads its configuration from the default export
export default {
  testRunner: 'vitest',
  vitest: { configFile: 'test/stryker.vitest.config.ts', related: false },
  plugins: ['@stryker-mutator/vitest-runner'],
  mutate: sample(ROOM),
  // TypeScript 7 has no API that Stryker could rewrite a tsconfig with; vitest needs none.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  concurrency: 2,
  ignoreStatic: true,
  reporters: ['clear-text', 'progress'],
  tempDirName: '.mutation',
  thresholds: { high: 95, low: 85, break: 75 },
}
