import { type History, isTrusted, type Reading } from './measure.ts'

export const HEADING = [
  '| how the list moves | extra requests: mean / most | verdicts | trusted walks that missed something | items missed in each | wrong pairs |',
  '| --- | --- | --- | --- | --- | --- |',
].join('\n')

/** The results of many histories of a kind, as one line of a table in Markdown. */
export function rowText(kind: string, histories: readonly History[]): string {
  const all = histories.flatMap(({ readings }) => readings)
  const trusted = all.filter(isTrusted)
  const extra = all.map((reading) => reading.extra)
  const pairs = histories.flatMap(({ wronglyRemoved }) => wronglyRemoved ?? [])
  const verdicts = (['steady', 'repaired', 'drifted'] as const).flatMap((name) => {
    const part = share(all, ({ coverage }) => coverage === name)
    return part === 0 ? [] : part === 100 ? [name] : [`${name} ${short(part)} %`]
  })
  const ofTrusted = (value: string) => (trusted.length === 0 ? '-' : value)
  const cells = [
    kind,
    `${short(mean(extra))} % / ${short(Math.max(...extra))} %`,
    verdicts.join(', '),
    ofTrusted(`${short(share(trusted, ({ missed }) => missed > 0))} %`),
    ofTrusted(short(mean(trusted.map(({ missed }) => missed)), 4)),
    `${pairs.filter((wrong) => wrong > 0).length} of ${pairs.length}`,
  ]
  return `| ${cells.join(' | ')} |`
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

function share(readings: readonly Reading[], is: (reading: Reading) => boolean): number {
  return readings.length === 0 ? 0 : (100 * readings.filter(is).length) / readings.length
}

function short(value: number, digits = 2): string {
  return String(Number(value.toFixed(digits)))
}
