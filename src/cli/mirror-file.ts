import { MirrorError } from '../errors.ts'
import { assertMayRead } from '../store/sqlite/file/errors.ts'
import { inspectHeader } from '../store/sqlite/file/header.ts'
import { guarded } from '../store/sqlite/file/open.ts'

/** Whether there is no mirror yet. To be asked before this process opens it. */
export function isNotMadeYet(file: string): boolean {
  assertMayRead(file)
  const { kind } = guarded(file, () => inspectHeader(file))
  return kind === 'absent' || kind === 'empty'
}

/** For commands that are nothing without a mirror, and must not make one. */
export function assertMirror(file: string): void {
  if (isNotMadeYet(file)) throw noMirror(file)
}

export function noMirror(file: string): MirrorError {
  return new MirrorError(`there is no mirror at ${file} yet; "admin-mirror sync" makes it`)
}
