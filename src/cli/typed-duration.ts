import { parseDuration } from '../config/fields.ts'
import { UsageError } from '../errors.ts'

/** A duration that an option gives. */
export interface TypedDuration {
  typed: string
  ms: number
}

/** The value of an option; null without it. Throws UsageError for one that is no duration. `examples`: for its message. */
export function typedDuration(
  option: string,
  typed: string | undefined,
  examples: string,
): TypedDuration | null {
  if (typed === undefined) return null
  const ms = parseDuration(typed)
  if (ms === null) throw new UsageError(`${option} ${typed}: write a duration like ${examples}`)
  return { typed, ms }
}
