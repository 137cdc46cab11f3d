import process from 'node:process'

const DAY = 86_400_000

/**
 * The first seed of many: of other histories each day, none of which the fast tests play, and all below those of scenes.
 * SEEDS_FROM names another one.
 */
export function rotatingFrom(most: number): number {
  const { SEEDS_FROM } = process.env
  if (SEEDS_FROM !== undefined) return Number(SEEDS_FROM)
  const turns = Math.floor(900_000 / most)
  return 2000 + most * (Math.floor(Date.now() / DAY) % turns)
}
