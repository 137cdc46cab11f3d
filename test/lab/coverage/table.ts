import { availableParallelism } from 'node:os'
import { answer, runChild, takeTask } from '../../simulation/shards.ts'
import { kindNamed } from './kinds.ts'
import { type History, isTrusted, live, type Reading } from './measure.ts'

export const HEADING = [
  '| how the list moves | extra requests: mean / most | verdicts | trusted walks that missed something | items missed in each | wrong pairs |',
  '| --- | --- | --- | --- | --- | --- |',
].join('\n')

interface Task {
  kind: string
  seeds: number[]
}

/** Measures so many walks over lists of this kind, in as many processes as there are cores; a line of a table in Markdown. */
export async function measureKind(kind: string, walks: number): Promise<string> {
  const seeds = Array.from({ length: Math.ceil(walks / 2) }, (_, index) => index + 1)
  const cores = Math.min(availableParallelism(), seeds.length)
  const shares = await Promise.all(
    Array.from({ length: cores }, (_, core) => {
      const task: Task = { kind, seeds: seeds.filter((seed) => seed % cores === core) }
      return runChild<History[]>(import.meta.filename, task)
    }),
  )
  return rowText(kind, shares.flat())
}

function rowText(kind: string, histories: readonly History[]): string {
  const all = histories.flatMap(({ readings }) => readings)
  const trusted = all.filter(isTrusted)
  const extra = all.map((reading) => reading.extra)
  const pairs = histories.flatMap(({ wronglyRemoved }) => wronglyRemoved ?? [])
  const verdicts = (['steady', 'repaired', 'drifted'] as const).flatMap((name) => {
    const part = percent(all, ({ coverage }) => coverage === name)
    return part === 0 ? [] : part === 100 ? [name] : [`${name} ${short(part)} %`]
  })
  const ofTrusted = (value: string) => (trusted.length === 0 ? '-' : value)
  const cells = [
    kind,
    `${short(mean(extra))} % / ${short(Math.max(...extra))} %`,
    verdicts.join(', '),
    ofTrusted(`${short(percent(trusted, ({ missed }) => missed > 0))} %`),
    ofTrusted(short(mean(trusted.map(({ missed }) => missed)), 4)),
    `${pairs.filter((wrong) => wrong > 0).length} of ${pairs.length}`,
  ]
  return `| ${cells.join(' | ')} |`
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function percent(readings: readonly Reading[], is: (reading: Reading) => boolean): number {
  return 100 * mean(readings.map((reading) => Number(is(reading))))
}

function short(value: number, digits = 2): string {
  return String(Number(value.toFixed(digits)))
}

// As one of these processes: plays histories of a kind.
if (import.meta.main) {
  const { kind, seeds } = await takeTask<Task>()
  answer(seeds.map((seed) => live(kindNamed(kind), seed)))
}
