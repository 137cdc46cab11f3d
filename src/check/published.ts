import path from 'node:path'
import { UsageError } from '../errors.ts'
import { assertNumbersOrNothing, numbersFile } from '../store/sqlite/publish/numbers.ts'
import { assertOwnCopy, type Origin } from '../store/sqlite/publish/origin.ts'
import { inspectPlace } from '../store/sqlite/publish/place.ts'
import { checkFolder } from './disk.ts'
import { type Finding, fail } from './finding.ts'

const NAME = 'publish'

/** Where copies are put. `origin`: of the mirror; null while there is none. */
export function checkPublished(file: string, origin: Origin | null): Finding[] {
  const folder = checkFolder(NAME, path.dirname(file))
  try {
    const place = inspectPlace(file)
    assertNumbersOrNothing(numbersFile(place.file))
    if (origin) assertOwnCopy(file, place, origin)
    return [folder]
  } catch (error) {
    if (error instanceof UsageError) return [folder, fail(NAME, 2, error.message, null)]
    // A folder that cannot be read; that is said already.
    if (error instanceof Error && 'code' in error) return [folder]
    throw error
  }
}
