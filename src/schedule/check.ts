import { createRequire } from 'node:module'
import { isPlain } from './plain.ts'

const require = createRequire(import.meta.url)

/**
 * What is wrong with a cron expression (5 or 6 fields, or a word like `@daily`), in plain words; null when nothing is.
 * One that can never fire (30 February) is wrong, too. A day must suit both its day of month and its day of week.
 *
 * Every command checks the whole configuration, and few of them schedule anything: node-cron, and the time zones that it
 * asks for, are loaded where an expression cannot be judged without it. That is 45 ms of a `status` of 190 ms.
 */
export function checkCron(expression: string): string | null {
  if (isPlain(expression)) return null
  // Not import(), since the rules of the configuration are checked in one go.
  const { findCronFault } = require('./cron.ts') as typeof import('./cron.ts')
  return findCronFault(expression)
}
