import { dirname, resolve } from 'node:path'
import type { KeyPath } from './config-error.ts'
import { parseDuration } from './duration.ts'
import type { Report } from './problems.ts'
import { rawAt, rawItems } from './raw-value.ts'
import { DATABASE } from './schema.ts'
import { RETRY_DELAYS } from './section-schemas.ts'

/** Tells what is wrong with a cron expression; null when nothing is. */
export type CronCheck = (expression: string) => string | null

/*
 * The rules that more than one key takes part in. They look at the file as it was read and not at what the schema made
 * of it, so that they are checked although other keys are wrong; what is no text or list is left to the schema.
 */

/** `retry.minDelay` must not be longer than `retry.maxDelay`. */
export function checkRetryDelays(raw: unknown, report: Report): void {
  const least = delayAt(raw, 'minDelay')
  const most = delayAt(raw, 'maxDelay')
  if (least === null || most === null || least <= most) return
  if (rawAt(raw, ['retry', 'minDelay']) === undefined) {
    report(
      ['retry', 'maxDelay'],
      `must not be shorter than retry.minDelay (${RETRY_DELAYS.minDelay} unless it is given).`,
    )
  } else {
    report(
      ['retry', 'minDelay'],
      `must not be longer than retry.maxDelay (${RETRY_DELAYS.maxDelay} unless it is given).`,
    )
  }
}

function delayAt(raw: unknown, key: keyof typeof RETRY_DELAYS): number | null {
  const given = rawAt(raw, ['retry', key]) ?? RETRY_DELAYS[key]
  return typeof given === 'string' ? parseDuration(given) : null
}

/** `database`, `publish` and the configuration (`file`, absolute) must be three files. */
export function checkPaths(raw: unknown, report: Report, file: string): void {
  const database = resolve(dirname(file), textAt(raw, ['database']) ?? DATABASE)
  const published = textAt(raw, ['publish'])
  const publish = published === null ? null : resolve(dirname(file), published)
  if (database === file)
    report(['database'], 'names this configuration file. Name a file of its own for the mirror.')
  if (publish === file)
    report(['publish'], 'names this configuration file. Name a file of its own for the copy.')
  if (publish === database)
    report(['publish'], 'is the same file as database. Name another one, best in a folder of its own.')
}

/** Every schedule must be a cron expression. */
export function checkSchedules(
  raw: unknown,
  report: Report,
  isCron: CronCheck,
  isFromVariable: (path: KeyPath) => boolean,
): void {
  const organizations = rawItems(rawAt(raw, ['organizations']))
  for (const path of [
    ['schedule'],
    ...organizations.map((_, index) => ['organizations', index, 'schedule']),
  ]) {
    const expression = textAt(raw, path)
    const fault = expression === null ? null : isCron(expression)
    // The fault may quote the expression, which nobody may see when it comes from a variable.
    if (fault !== null)
      report(path, `must be a cron expression${isFromVariable(path) ? '' : ` (${fault})`}. ${CRON_HINT}`)
  }
}

const CRON_HINT = 'Write 5 or 6 fields in quotes, like "*/15 * * * *".'

function textAt(raw: unknown, path: KeyPath): string | null {
  const value = rawAt(raw, path)
  return typeof value === 'string' ? value : null
}
